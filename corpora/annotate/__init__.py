"""Annotation layers: the words of a text as Universal Dependencies, in a layer of columns beside the text.

Start at layer.py: Tree, a parsed sentence, and Layer, which reads them. run.py is the work of `python -m
corpora.annotate`; parsers/ has the parsers, a file each.
"""
