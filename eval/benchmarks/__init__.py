"""Read minimal pairs from published benchmarks and users' tables, and generate them from a grammar.

A benchmark is a YAML file in conf/benchmark/ that names files and columns. Start with load.py, which makes pairs from
the rows that files.py reads. form.py defines forms for files that columns can't describe. paradigm.py draws pairs from
a grammar, and the templates are in generated/ and toy/. known_items.py lists published pairs that are faulty.
"""
