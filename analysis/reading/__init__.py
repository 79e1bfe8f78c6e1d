"""`python -m analysis.reading`: what surprisal says about reading times.

files.py reads times, times.py has the regressions, run.py is the command, and results.py is what it writes.
"""
