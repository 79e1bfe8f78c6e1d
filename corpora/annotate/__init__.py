"""Annotation: the words and dependency trees of a text, as Universal Dependencies define them, stored beside the text.

Start at tree.py, a parsed sentence, and layer.py, which stores and reads them. run.py is the work of `python -m
corpora.annotate`; parsers/ has one file per parser.
"""
