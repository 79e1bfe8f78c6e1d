"""Parsers, a file each: a model's words and trees as Tree. parser.py has their interface and registry."""
