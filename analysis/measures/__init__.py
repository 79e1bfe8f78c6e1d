"""Measures of scores besides curves, as functions of tables: a file each.

accuracies.py by level, items.py pair by pair, methods.py judgement methods against each other, predictors.py shallow
predictors, word_frequency.py, perplexity.py, and diagnostics.py for cloze diagnostics.
"""
