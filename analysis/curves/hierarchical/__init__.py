"""One hierarchical binomial model of all accuracies of a study (analysis.model=hierarchical), sampled by NumPyro.

Start at fit.py, the whole. counts.py has what is modelled, and the contrasts that keep levels of the hierarchy apart;
model.py is the model, sampling.py draws from its posterior, posterior.py turns draws into slopes, differences and
orders with intervals, checks.py compares simulated judgements with those seen, diagnosis.py says whether the sampler
may be believed. All but fit.py, counts.py and diagnosis.py import NumPyro, an extra: pip install "pairscale[bayes]".
"""
