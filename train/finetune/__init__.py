"""Fine-tune the models of a study on tables of texts with labels (python -m train.finetune).

Start at `run.py`, which goes through the runs. `table.py` reads and encodes a table, `classifier.py` puts a classifier
on a model, and `training.py` trains both and predicts. `train` knows no benchmark: a task is a table and a recipe.
"""
