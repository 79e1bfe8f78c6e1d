"""Forms of benchmarks: how rows become pairs, one form a file, registered under the name that `benchmark.form` takes.

form.py is the registry, pairs.py the form of anyone's tables. A new form is a new file, here or in a plug-in.
"""
