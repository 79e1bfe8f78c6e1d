"""Parsers trained on treebanks of Universal Dependencies, for corpora.annotate: `python -m corpora.train_parser`.

run.py is the work of the command, training.py spaCy's training with our settings; scores.py compares the trees of a
parser with those of the treebank, and published.csv has scores of other parsers.
"""
