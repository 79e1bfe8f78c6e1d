"""Sentences that say no more than their interval: findings, curves, methods, diagnostics."""
