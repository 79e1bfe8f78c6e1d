"""The run folder and what is in it. folder.py owns every path; no module but export.py imports torch."""
