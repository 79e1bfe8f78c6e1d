"""Text in: corpora from their sources to splits, samples, tokenizers and token stores.

`prepare` (prepare.py) is the entrance. It reads documents (sources/, toy/), writes text.py's text store, fits one of
tokenizers.py, encodes the text into store.py's token store, and draws samples (samples.py) past filters.py's filter.
fast_tokenizers.py gives them to the transformers library; words.py defines a word; annotate/ parses a text, and lays
trees beside it; grammar/ is the engine behind the toy language and the generated minimal pairs. Nothing here knows of
models or benchmarks.
"""
