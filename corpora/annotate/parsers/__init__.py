"""Parsers, one per file, which turn the output of a model into Trees. parser.py has their interface and registry."""
