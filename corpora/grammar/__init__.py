"""The template engine: grammars and lexicons that write text and minimal pairs.

symbols.py defines the notation, lexicon.py the tables of words, and engine.py the grammar that draws from them and
spells sentences. Start at `read_grammar` in engine.py.
"""
