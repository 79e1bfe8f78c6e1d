"""Graded measures of benchmarks of pairs: separation.py, good and bad sentences by one threshold."""

from analysis.sections.graded.separation import separation as separation
