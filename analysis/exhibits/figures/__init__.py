"""Figures, declared with Altair; style.py is what they share."""
