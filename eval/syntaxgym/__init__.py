"""SyntaxGym: suites of sentences, and what a grammar says of the surprisal of their regions (Hu et al. 2020).

suites.py reads them, formulas.py parses what they predict, regions.py sums surprisal, measures.py has the SG score.
"""
