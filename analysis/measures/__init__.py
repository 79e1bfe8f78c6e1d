"""What is measured of scores besides curves: accuracies by level, items, predictors, word frequency, methods."""
