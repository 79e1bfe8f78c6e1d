"""Minimal pairs: files of published benchmarks in their forms, pairs from templates, pairs known to be faulty.

load.py is the entrance; forms/ has a file for each form, files.py opens files and data sets, paradigm.py draws pairs
from a grammar, generated/ and toy/ hold the templates.
"""
