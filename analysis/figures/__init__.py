"""Figures: charts.py draws them, style.py has their look, files.py writes them in the size that was asked for."""
