"""The training loop: what happens between the first batch and the last, and all that a resumed run needs.

module.py is the loop's steps; batches.py the order of the text, recipes.py optimisers and schedules, checkpoints.py and
snapshots.py what is saved, preemption.py signals, ranks.py several devices, perplexity.py validation, device.py threads
and precision, progress.py and loggers.py what is shown.
"""
