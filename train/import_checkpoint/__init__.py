"""Checkpoints of other people's code as run folders of ours: `python -m train.import_checkpoint`."""
