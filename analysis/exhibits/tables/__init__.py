"""Tables: numbers with the digits that they support (text.py), LaTeX and CSV files (latex.py), slopes and curves."""
