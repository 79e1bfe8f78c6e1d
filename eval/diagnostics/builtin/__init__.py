"""The diagnostics of pairscale, registered as eval/diagnostics/diagnostic.py says; one is a file and a YAML."""
