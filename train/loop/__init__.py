"""The training loop: all between the configuration of a run and its exported model.

Read training.py first: it is one training from top to bottom. state.py has what a resumed run needs, batches.py the
order of the text, perplexity.py validation, snapshots.py weights for trajectories, preemption.py signals, and device.py
threads, precision and several devices.
"""
