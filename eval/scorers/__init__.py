"""All models behind one interface: log-probabilities (nats) of sentences, answers to prompts and next words.

base.py             the interface
load.py             load a model by folder or name (pretrained.py: Hugging Face models)
causal.py           score models that read from left to right
causal_models.py    our own models and n-gram models (network.py: models of transformers)
masked.py           score masked models
tokens.py           what scorers need from a tokenizer
"""
