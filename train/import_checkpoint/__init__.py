"""Checkpoints of the papers' own code as runs of ours: `python -m train.import_checkpoint`.

pickles.py reads pickled checkpoints as data, without running them; lstm.py and transformer_xl.py map their weights,
vocabulary.py their words.
"""
