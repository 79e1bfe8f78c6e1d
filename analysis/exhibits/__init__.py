"""The exhibits of a report: figures and tables under a sentence (exhibit.py).

figures/ draws, tables/ formats numbers as text and LaTeX, sentences/ states what they allow.
"""
