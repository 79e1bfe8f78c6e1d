"""The runs of a study as tables.

collect.py reads run folders, sources/ whatever `source` names; combine.py joins several studies. judgements.py turns
score files into judgements pair by pair, baselines.py those of untrained
models and models of shuffled text, the baselines of an onset.
"""
