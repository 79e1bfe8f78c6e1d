"""What a model expects after a context: the probability and rank of candidate words, and the most probable words.

answers.py is the entrance: `NextWordScorer` turns distributions over tokens into answers. readings.py decides which
tokens to read, whole_words.py which tokens are words or begin one; predictions.py is of each token of a text.
"""
