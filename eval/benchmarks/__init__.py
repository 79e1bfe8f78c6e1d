"""Minimal pairs: published benchmarks and users' tables, pairs drawn from a grammar, pairs known to be faulty.

A benchmark is a YAML in conf/benchmark/ that names files and columns. load.py is the entrance, and makes pairs of the
rows that files.py reads. form.py has the few forms that columns do not describe; paradigm.py draws pairs from a
grammar, generated/ and toy/ have the templates.
"""
