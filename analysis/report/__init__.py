"""The report: what it knows (benchmark.py), says (findings.py) and shows (exhibit.py); write.py writes it.

labels.py names curves, and people.py reads answers to questionnaires. The sections are in analysis/sections.
"""
