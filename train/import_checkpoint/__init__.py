"""Checkpoints of the papers' own code as runs of ours: `python -m train.import_checkpoint`.

pickles.py reads pickled checkpoints as data, without running them; networks.py maps their weights and words,
and run.py writes the run folder.
"""
