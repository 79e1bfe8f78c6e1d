"""Judgement methods: how scores of a good and a bad sentence become a judgement.

method.py is the registry, builtin/ has a file for each method or family of them. sides.py has the scores of both
sentences, templates.py and prompting.py put sentences into texts; judging.py runs all methods in one pass.
"""
