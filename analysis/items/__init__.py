"""Parts of a report on benchmarks of items: diagnostics (cloze.py), suites (suites.py), rated sentences (ratings.py).

Each of these modules describes its benchmark: the measures of each run, and the texts about them. parts.py reads the
answers of runs, and results.py turns a description into a part of the report.
"""
