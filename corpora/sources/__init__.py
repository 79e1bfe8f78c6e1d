"""Sources of text: local files, data sets of the Hugging Face Hub, the Wikipedia of Gulordava et al. 2018.

`documents(config)` in read.py is the entrance; lines.py reads compressed files, sentences.py splits paragraphs.
"""
