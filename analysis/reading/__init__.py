"""`python -m analysis.reading`: what surprisal says about reading times (files.py), by regressions (times.py)."""
