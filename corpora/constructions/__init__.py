"""Constructions: sentences of a corpus found by patterns over their dependency trees, or by a regular expression.

patterns.py has the language of the patterns, which is that of spaCy's DependencyMatcher, and of rules that rewrite what
they match. matcher.py matches patterns to a tree; matches.py searches a whole text once and keeps what it found.
"""
