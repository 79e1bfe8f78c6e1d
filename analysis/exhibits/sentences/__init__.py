"""Sentences that say no more than their interval allows: findings, extent and warnings, methods, diagnostics."""
