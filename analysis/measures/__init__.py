"""Measures of scores besides curves: accuracies by level, items, predictors, word frequency, perplexity, methods."""
