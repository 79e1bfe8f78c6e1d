"""Score files: what a model answered to a benchmark.

schemas.py has their columns and metadata, files.py writes and reads them; accuracy.py computes accuracies from them,
table.py shows these in the terminal, names.py names benchmarks for readers.
"""
