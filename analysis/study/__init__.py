"""The runs of a study as tables.

collect.py reads run folders, sources/ whatever `source` names; combine.py joins several studies. judgements.py turns
score files into judgements pair by pair, untrained.py those of untrained models, the baseline of an onset.
"""
