"""Constructions: sentences of a corpus found by patterns over their dependency trees.

config.py has the type of conf/filter/*.yaml, and patterns.py the language of the patterns, which is that of spaCy's
DependencyMatcher. matcher.py matches them to a tree; matches.py searches a whole text once and keeps what it found.
rules.py has the language of rewriting rules.
"""
