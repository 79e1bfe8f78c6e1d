"""Define language models and their losses. A model maps tokens and a state to hidden states and the next state.

config.py contains the configurations and the registry of architectures. base.py defines the interface that all models
share, and build.py builds a model from its configuration. recurrent.py and txl.py contain one family each, and
huggingface.py contains the networks of transformers. loss.py computes the softmax, in chunks or adaptively. travel.py
writes a model's code to a folder that transformers can load, where modeling.py is the entry point.
"""
