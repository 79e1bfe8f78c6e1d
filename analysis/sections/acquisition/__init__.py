"""Sections on acquisition: exhibits.py, order of units and shapes of curves; children.py, words and children."""

from analysis.sections.acquisition.exhibits import acquisition as acquisition
