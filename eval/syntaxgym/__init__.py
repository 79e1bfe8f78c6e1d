"""SyntaxGym: suites of sentences, and what a grammar says of the surprisal of their regions (Hu et al. 2020).

suites.py reads them, formulas.py parses what they predict, regions.py sums surprisal. run.py scores a run, files.py has
the schema of its score files, measures.py the SG score; table.py shows it.
"""
