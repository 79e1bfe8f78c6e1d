"""Minimal pairs put before people: `python -m eval.questionnaire`.

forms.py draws the questions and writes them into page.html, which opens in a browser; answers.py reads the files that
come back, and measures how far people agree with the benchmark.
"""
