"""Write, read and evaluate score files, which contain a model's answers to a benchmark.

schemas.py defines their columns and metadata, and files.py writes and reads them. accuracy.py computes accuracies, and
table.py shows them in the terminal. names.py turns the names of score folders into readable benchmark names.
"""
