"""Make the parts of a report on diagnostics (cloze.py), suites (suites.py) and rated sentences (ratings.py).

Each of these modules describes its benchmark, with the measures of each run and the texts about them. parts.py reads
the answers of runs, and results.py turns a description into a part of the report.
"""
