"""Language models as plain modules that map (tokens, state) to (hidden, state), and their losses.

config.py has their configurations and the registry of architectures, base.py what all have in common, build.py makes
one from its configuration; lstm.py and txl.py are one architecture each. loss.py is the chunked softmax, adaptive.py
the adaptive one, dropout.py the dropout of whole rows.
"""
