"""Benchmarks that are not of pairs: diagnostics.py (Ettinger 2020), syntaxgym.py (Hu et al. 2020), ratings.py."""
