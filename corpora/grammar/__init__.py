"""Generate text and minimal pairs from grammars and lexicons.

Start at `read_grammar` in engine.py, which draws words and spells sentences. symbols.py defines the notation, and
lexicon.py defines the tables of words.
"""
