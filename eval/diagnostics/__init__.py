"""Psycholinguistic diagnostics: which words a model expects after a context, as cloze questions (Ettinger 2020).

diagnostic.py is the registry, and ettinger.py has CPRAG-102, ROLE-88 and NEG-136. questions.py reads the questions and
makes rows of a model's answers. measures.py computes from these what the paper reports.
"""
