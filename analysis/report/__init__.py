"""Make the data (benchmark.py), sentences (findings.py), exhibits (exhibit.py) and files (write.py) of a report.

labels.py names curves, and people.py reads answers to questionnaires. The sections are in analysis/sections.
"""
