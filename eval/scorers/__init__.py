"""Models behind one interface: sentences in, log-probabilities (nats) of their tokens out.

base.py is the interface, load.py finds the scorer of a run or of a pretrained model; own.py, causal.py, masked.py and
ngram.py are one kind of model each.
"""
