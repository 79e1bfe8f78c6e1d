"""Others' published numbers as the table of accuracies that `analysis.accuracies` gives for run folders.

`read_source` (read.py) reads what a configuration names by table.py, lm_eval.py or babylm.py. Each returns rows of
outcomes, from which published.py makes the table. settings.py has what a user says about the numbers.
"""
