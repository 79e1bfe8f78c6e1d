"""Annotate a text with words and dependency trees from Universal Dependencies, and store them next to the text.

Start at tree.py, which defines a parsed sentence, and layer.py, which stores and reads them. run.py implements
`python -m corpora.annotate`, and parsers/ has one file per parser.
"""
