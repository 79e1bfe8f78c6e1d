"""The hierarchical model in the report: exhibits.py, and their figures.py."""

from analysis.sections.hierarchical.exhibits import hierarchical as hierarchical
