"""The papers' tables, figures and statements, reproduced from their published accuracies (`analysis published=true`).

papers.py arranges them, exhibits.py makes tables and figures, statements.py checks the papers' sentences,
reproduction.py writes the page.
"""
