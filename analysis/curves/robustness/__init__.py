"""What curves rest on: faulty.py, known faulty pairs; lexical.py, words that pairs share; averaged_shapes.py, shapes.

Each gives estimates of analysis.curves once more: without those pairs, for new words, and averaged over shapes.
"""
