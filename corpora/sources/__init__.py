"""Where a corpus comes from: local files (read.py, lines.py), data sets of a hub, the Wikipedia of Gulordava et al.
2018.

read.py is the entrance: `documents(config)`. sentences.py cuts paragraphs into sentences.
"""
