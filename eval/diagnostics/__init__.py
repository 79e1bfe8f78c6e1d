"""Ask which words a model expects after a context, with psycholinguistic diagnostics (Ettinger 2020).

diagnostic.py registers diagnostics, and ettinger.py defines CPRAG-102, ROLE-88 and NEG-136. questions.py reads the
questions, and turns a model's answers into rows. measures.py computes the paper's measures from these rows.
"""
