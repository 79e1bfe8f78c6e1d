"""Judgement methods: how to decide from a model's scores which sentence of a pair it prefers.

The methods are in builtin/, and method.py registers them with their parameters. judging.py runs all methods in one pass
over the model: on sentences (sides.py), on templates with a sentence filled in (templates.py), and on prompts.
"""
