"""Exports: runs as models of the transformers library, with their tokenizers and model cards, and their upload."""
