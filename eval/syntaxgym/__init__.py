"""Score SyntaxGym suites, whose predictions compare the surprisals of sentences' regions (Hu et al. 2020).

suites.py reads suites and sums surprisals by region. formulas.py parses predictions. measures.py computes SG scores.
"""
