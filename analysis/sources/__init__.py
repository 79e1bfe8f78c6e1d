"""Read numbers from elsewhere into the same table of accuracies that `analysis.accuracies` makes from run folders.

`read_source` (read.py) reads the files that a configuration names with table.py, lm_eval.py or babylm.py. Each of these
returns rows of outcomes, from which published.py makes the table. settings.py is what a user says about the numbers.
"""
