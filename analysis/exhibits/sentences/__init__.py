"""Sentences that say no more than their interval allows.

findings.py states what a study shows ("rises" where `direction` in exhibits/tables/text.py says that the interval lies
above 0), curves.py its extent and warnings, methods.py how it was computed, diagnostics.py what cloze diagnostics are.
"""
