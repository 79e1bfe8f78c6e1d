"""Models behind one interface: log-probabilities (nats) of sentences, of answers to prompts, of next words.

base.py is the interface; own.py, ngram.py, causal.py and masked.py are one kind of model each, load.py opens that of a
run folder and pretrained.py that of a Hugging Face model. left_to_right.py, hub.py and next_words/ hold common parts.
"""
