"""Text in: sources, splits, samples, tokenizers and token stores. Knows nothing of models."""
