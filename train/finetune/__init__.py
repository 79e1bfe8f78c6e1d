"""Fine-tune the models of a study on tables of texts with labels (python -m train.finetune).

Start at `run.py`, which goes through the runs. `table.py` reads and encodes a table. `training.py` puts a classifier on
a model, trains both and predicts. A task is only a table and a recipe, because `train` knows no benchmarks.
"""
