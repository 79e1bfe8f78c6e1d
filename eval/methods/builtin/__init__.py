"""The methods of pairscale, registered as eval/methods/method.py says; a new one is a new file."""
