"""SyntaxGym: suites of sentences, and what a grammar says of the surprisal of their regions (Hu et al. 2020).

suites.py reads them and sums surprisal by region, formulas.py parses what they predict, measures.py has the SG score.
"""
