"""The report: what it knows (benchmark.py), says (findings.py) and shows (exhibit.py); write.py writes it.

parts.py puts a benchmark, or reading times, together; labels.py names curves. The sections are in analysis/sections.
"""
