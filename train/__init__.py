"""Train language models: models, batches, recipes, run folders and checkpoints. Benchmarks belong to `eval`."""
