"""The methods that come with pairscale, registered as in eval/methods/method.py. A new method is a new file."""
