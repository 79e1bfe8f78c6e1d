"""Score files: what a model answered to a benchmark.

files.py owns their schema, reader and writer; accuracy.py computes accuracies from them, table.py shows these in the
terminal, names.py names benchmarks for readers, and record.py packs a run's scores for a tracker.
"""
