"""Export runs as models for the transformers library, with tokenizers and model cards, and upload them."""
