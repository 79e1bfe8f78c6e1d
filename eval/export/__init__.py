"""Export runs as models of the transformers library, with tokenizers and model cards, and upload them."""
