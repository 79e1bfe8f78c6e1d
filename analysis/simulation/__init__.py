"""Simulated studies of a stated design, with known truth, and how often a study's own intervals hold in them.

Start at studies.py: runs that judge pairs. spreads.py estimates what they are simulated with from a study. coverage.py
simulates a study anew. It uses nothing of the intervals that it judges but their limits.
"""
