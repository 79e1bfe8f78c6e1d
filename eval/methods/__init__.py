"""Decide from a model's scores which sentence of a pair it prefers, with judgement methods.

The methods are in builtin/, and method.py registers them with their parameters. judging.py runs all methods in one pass
over the model. It scores sentences (sides.py), templates with a sentence filled in (templates.py), and prompts.
"""
