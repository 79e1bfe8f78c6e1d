"""What a report shows: an exhibit is a figure and a table under a sentence (exhibit.py).

figures/ draws, tables/ sets numbers as text and LaTeX, sentences/ says what they allow.
"""
