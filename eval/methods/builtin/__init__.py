"""The built-in methods, registered as in eval/methods/method.py. To add a method, add a file."""
