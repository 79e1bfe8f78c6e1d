"""Where a study is read from: run folders, W&B, and others' published numbers.

source.py is the registry of what `source=NAME` takes; each other module that registers is one source. files.py and
wandb.py read what pairscale wrote. table.py, lm_eval.py and babylm.py read what others wrote, into rows of outcomes.py,
which makes a study of them; config.py has their settings.
"""
