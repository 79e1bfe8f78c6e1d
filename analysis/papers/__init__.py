"""The papers' tables, figures and statements, reproduced from their published accuracies (`analysis published=true`).

papers.py arranges them, blimp.py and climp.py have their definitions, statements.py checks the papers' sentences,
reproduction.py writes the page.
"""
