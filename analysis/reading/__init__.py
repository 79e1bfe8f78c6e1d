"""`python -m analysis.reading`: what the surprisal of a study's runs says about how long people read each word.

run.py is the command; the data and statistics are in analysis/measures/reading, the page in analysis/sections.
"""
