"""Psycholinguistic diagnostics, which ask what words a model expects after a context (Ettinger 2020).

diagnostic.py is the registry, and ettinger.py has CPRAG-102, ROLE-88 and NEG-136. questions.py reads the questions and
turns a model's answers into rows, from which measures.py computes what the paper reports.
"""
