"""The training loop: all between the configuration of a run and its exported model, and what a resumed run needs.

training.py reads from top to bottom; module.py has the steps, state.py what is carried between them, data.py and
batches.py the order of the text, checkpoints.py what resuming needs, snapshots.py weights for trajectories,
preemption.py signals, ranks.py several devices, perplexity.py validation, device.py threads and precision, progress.py
the progress bar.
"""
