"""Read minimal pairs from published benchmarks and users' tables, and generate them from a grammar.

A benchmark is a YAML file in conf/benchmark/ that names files and columns. Start at load.py, which makes pairs of the
rows that files.py reads. form.py has the few forms that columns can't describe. paradigm.py draws pairs from a grammar,
whose templates are in generated/ and toy/. known_items.py knows which published pairs are faulty.
"""
