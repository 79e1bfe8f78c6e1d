"""Minimal pairs: files of published benchmarks in their forms, pairs from templates, pairs known to be faulty.

load.py is the entrance; forms.py has a reader for each form, files.py opens the files, template.py draws pairs from a
grammar, generated/ and toy/ hold the templates.
"""
