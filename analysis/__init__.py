"""Collect score files, fit learning curves, draw tables, figures and the report. Never loads a model."""
