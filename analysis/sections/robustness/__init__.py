"""Sections on what curves rest on: baselines.py, models without grammar; faulty.py, pairs; new_words.py, words."""

from analysis.sections.robustness.baselines import baselines as baselines
from analysis.sections.robustness.faulty import faulty as faulty
from analysis.sections.robustness.new_words import new_words as new_words
