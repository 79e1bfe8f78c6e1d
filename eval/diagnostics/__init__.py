"""Psycholinguistic diagnostics (Ettinger 2020): CPRAG-102, ROLE-88, NEG-136, as cloze items.

questions.py reads the items, next_words.py asks a scorer for next words, run.py scores, files.py keeps the scores,
measures.py and table.py say what they show.
"""
