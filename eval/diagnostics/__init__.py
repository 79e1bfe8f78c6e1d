"""Psycholinguistic diagnostics (Ettinger 2020): CPRAG-102, ROLE-88, NEG-136, as cloze items.

questions.py reads the items, run.py scores a run on them, files.py reads and writes the scores; measures.py and
table.py show them.
"""
