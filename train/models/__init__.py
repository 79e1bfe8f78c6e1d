"""Language models as plain modules that map (tokens, state) to (hidden, state), and their losses.

config.py has their configurations and the registry of architectures, base.py what all have
in common; build.py makes one from its configuration. recurrent.py and txl.py are one family each, huggingface.py has
the networks of transformers. loss.py is the softmax, in chunks or adaptive. travel.py puts a model into a folder that
transformers loads, with the code of its class; modeling.py is its face there.
"""
