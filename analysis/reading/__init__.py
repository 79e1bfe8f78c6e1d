"""`python -m analysis.reading`: read files of reading times (files.py), and predict them from surprisal (times.py)."""
