"""The runs of a study as tables.

collect.py reads run folders and wandb.py tracked runs; combine.py joins several studies. judgements.py turns score
files into judgements pair by pair, untrained.py those of untrained models, the baseline of an onset.
"""
