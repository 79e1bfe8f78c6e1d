"""Sections on benchmarks of items, not of pairs: diagnostics.py (Ettinger 2020), syntaxgym.py (Hu et al. 2020)."""
