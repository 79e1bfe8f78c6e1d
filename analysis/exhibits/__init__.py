"""The exhibits of a report (exhibit.py): figures, tables as text and LaTeX, and sentences on what they allow."""
