"""The kinds of items that models are scored on, with one protocol (work.py).

pairs.py has minimal pairs, and items.py has items with questions, regions or ratings. KINDS in items.py says which
class scores a benchmark.
"""
