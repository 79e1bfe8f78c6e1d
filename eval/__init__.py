"""Benchmarks, scorers, judgement methods and score files. Never imports Lightning to score."""
