"""Run the training loop, from a run's configuration to its exported model.

Read training.py first, which trains one run, from top to bottom. state.py saves what a resumed run needs, batches.py
orders the text, perplexity.py validates, snapshots.py saves weights for trajectories, preemption.py handles signals,
and device.py sets threads, precision and devices.
"""
