"""One hierarchical binomial model of all accuracies of a study (analysis.model=hierarchical), sampled by NumPyro.

Start at counts.py: what is modelled, and the contrasts that keep levels of the hierarchy apart. model.py is the model,
sampling.py draws from its posterior, posterior.py turns draws into slopes, differences, orders and their intervals,
checks.py compares simulated judgements with those seen and says whether the sampler may be believed. Only model.py and
sampling.py import NumPyro, which is an extra: pip install "pairscale[bayes]".
"""
