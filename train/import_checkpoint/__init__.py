"""Convert published checkpoints to pairscale runs (`python -m train.import_checkpoint`).

pickles.py reads pickled checkpoints as data, without running them. networks.py converts their weights and vocabularies,
and run.py writes the run folder.
"""
