"""The report: its data (benchmark.py), sentences (findings.py), tables and figures (exhibit.py) and files (write.py).

labels.py names curves, and people.py reads answers to questionnaires. The sections are in analysis/sections.
"""
