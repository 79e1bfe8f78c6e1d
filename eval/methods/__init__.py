"""Judgement methods: how a model's answers about a good and a bad sentence become a judgement.

A method is one file in builtin/, registered in method.py with its parameters. judging.py runs all methods in one pass
over the model: on sentences (sides.py), on texts with a sentence in them (templates.py) and on prompts.
"""
