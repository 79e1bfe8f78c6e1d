"""The template engine, which generates text and minimal pairs from grammars and lexicons.

Start at `read_grammar` in engine.py, where a grammar draws words and spells sentences. symbols.py defines the notation,
and lexicon.py the tables of words.
"""
