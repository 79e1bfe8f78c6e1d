"""Models, batches, recipes, run folders and checkpoints. Knows nothing of benchmarks."""
