"""Psycholinguistic diagnostics: which words a model expects after a context, as cloze questions (Ettinger 2020).

diagnostic.py is the registry, builtin/ has a file for each: CPRAG-102, ROLE-88, NEG-136. questions.py reads the
questions, run.py asks a run, files.py has the schema of its answers; measures.py and table.py show them.
"""
