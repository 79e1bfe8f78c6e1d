"""Score files: their schemas, readers and writers (files.py), accuracies, tables for the terminal, W&B records."""
