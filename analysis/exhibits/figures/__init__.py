"""Figures, declared with Altair: learning curves, accuracies, methods, diagnostics; style.py has colours, sizes."""
