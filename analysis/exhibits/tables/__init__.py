"""Tables: numbers as text (text.py), LaTeX and CSV (latex.py), slopes and curves."""
