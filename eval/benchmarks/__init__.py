"""Minimal pairs: files of published benchmarks in their forms, pairs from templates, pairs known to be faulty.

load.py is the entrance; forms/ has the forms, files.py opens tables, paradigm.py draws from generated/ and toy/.
"""
