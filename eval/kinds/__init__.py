"""What models are scored on, behind one protocol (work.py): minimal pairs (pairs.py), and items with questions,
regions or ratings (items.py, whose KINDS says which class scores a benchmark).
"""
