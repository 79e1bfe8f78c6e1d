"""Read external results into the same table of accuracies that `analysis.accuracies` makes from run folders.

External results are published results, or results from other tools. `read_source` (read.py) uses table.py, lm_eval.py
or babylm.py to read the files that a configuration names. Each of these modules returns rows of outcomes, from which
published.py makes the table. settings.py defines the user's settings for these results.
"""
