"""The template engine: grammars and lexicons that write text and minimal pairs.

symbols.py has the notation, lexicon.py the tables of words, engine.py the grammar that draws, spelling.py how words
become text.
"""
