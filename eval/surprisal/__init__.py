"""Compute the surprisal of each word of a text, for the runs of a study and for pretrained models.

texts.py reads the user's file, and words.py turns the predictions of tokens (Scorer.predictions) into surprisals of
words. run.py implements `python -m eval.surprisal`. From Python, use `eval.surprisals`.
"""
