"""Psycholinguistic diagnostics: which words a model expects after a context, as cloze questions (Ettinger 2020).

diagnostic.py is the registry, builtin/ has a file for each: CPRAG-102, ROLE-88, NEG-136. questions.py reads the
questions, eval/kinds/cloze.py asks a run and shows its answers by measures.py.
"""
