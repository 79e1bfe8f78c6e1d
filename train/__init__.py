"""Train language models. The package contains models, batches, recipes, run folders and checkpoints."""
