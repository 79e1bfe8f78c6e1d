"""Sentences that say no more than their interval allows.

findings.py states what a study shows, curves.py its extent and warnings, methods.py how it was computed, diagnostics.py
what cloze diagnostics are.
"""
