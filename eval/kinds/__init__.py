"""The kinds of items that models are scored on, with a common base class (work.py).

pairs.py scores minimal pairs, and items.py scores items with questions, regions or ratings. KINDS in items.py maps
benchmarks to classes.
"""
