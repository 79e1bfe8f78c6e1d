"""Score files: a model's answers to a benchmark.

schemas.py defines their columns and metadata, and files.py writes and reads them. accuracy.py computes accuracies,
table.py shows them in the terminal, and names.py gives benchmarks their names for readers.
"""
