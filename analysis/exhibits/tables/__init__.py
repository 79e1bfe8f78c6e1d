"""Tables: numbers as words and digits (text.py), LaTeX and CSV files (latex.py), tables of slopes and of curves."""
