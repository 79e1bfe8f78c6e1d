"""Read text from local files, data sets on the Hugging Face Hub, and the Wikipedia of Gulordava et al. 2018.

Start at `documents` in read.py. files.py finds local files with their domains and splits. lines.py reads plain and
compressed files, and conllu.py reads CoNLL-U.
"""
