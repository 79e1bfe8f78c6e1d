"""Acquisition: at which amount of text units are acquired, in which order, and what shapes their curves have.

Start at sizes.py: where a curve crosses its threshold. orders.py ranks the units by it and correlates orders; turns.py
tests curves for a U or an inverted U, beside monotone.py (isotonic fits) and smooths.py (a GAM); spread.py has the
errors over runs that all of them use.
"""
