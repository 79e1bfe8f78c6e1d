"""Text in: corpora from their sources to splits, samples, tokenizers and token stores.

Start at `prepare` (prepare.py). It reads documents (sources/, toy/), writes the text store (text.py), fits a tokenizer
(tokenizers.py), encodes the text into the token store (store.py), and draws samples (samples.py), without a
construction if asked to (constructions/ finds it, ablation/ acts on it). kept.py is how folders of the store are
written once and checked; fast_tokenizers.py writes the tokenizers as transformers reads them; words.py defines a word;
annotate/ parses a text; grammar/ is the engine behind the toy language and the generated minimal pairs. Nothing here
knows of models or benchmarks.
"""
