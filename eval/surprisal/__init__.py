"""`python -m eval.surprisal`: the surprisal of each word of a text, for the runs of a study and pretrained models.

texts.py reads the user's file, words.py turns the predictions of tokens (Scorer.predictions) into those
of words, run.py is the command. From Python: eval.surprisals.
"""
