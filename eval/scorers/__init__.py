"""Compute log-probabilities (nats) of sentences, answers to prompts and next words, with one interface for all models.

base.py             the interface
load.py             load a model by folder or name (pretrained.py: Hugging Face models)
causal.py           score causal models
causal_models.py    our own models and n-gram models (network.py: models of transformers)
masked.py           score masked models
tokens.py           the tokenizers' interface
"""
