"""Models behind one interface: log-probabilities (nats) of sentences, of answers to prompts, of next words.

base.py is the interface, load.py opens a model by its folder or name (pretrained.py: of Hugging Face). causal.py scores
models that read from left to right, whatever they are (causal_models.py: ours and n-grams; network.py: transformers),
masked.py those that see both sides; tokens.py is what they need of a tokenizer.
"""
