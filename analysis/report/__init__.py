"""The report of a study: report.py arranges sections on a page, wandb.py sends tables to W&B."""
