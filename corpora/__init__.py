"""Read corpora, split them, draw samples from them, and fit tokenizers.

Start at `prepare` (prepare.py). It reads documents (sources/, toy/), writes the text store (text.py), fits a tokenizer
(tokenizers.py), encodes the text into the token store (store.py), and draws samples (samples.py). A sample can leave
out a construction, which constructions/ finds and ablation/ removes or rewrites.

kept.py writes folders of the store once, and checks them. fast_tokenizers.py writes tokenizers for transformers, and
words.py defines what a word is. annotate/ parses a text. grammar/ generates the toy language and minimal pairs. The
code in this folder doesn't depend on models or benchmarks.
"""
