"""Provide parsers, one per file, which turn the output of a model into Trees. parser.py defines their interface."""
