"""Votes over the templates of other methods (Ide et al. 2024, section 6), which conf/method/vote_*.yaml name."""

from eval.methods.method import vote_method

for name in ("vote_p", "vote_mix_p3", "vote_mix_l3", "vote_l"):
    vote_method(name)
