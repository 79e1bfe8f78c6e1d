"""Constructions: sentences of a corpus found by patterns over their dependency trees.

config.py has the type of conf/filter/*.yaml, patterns.py the language of the patterns, which is that of spaCy's
DependencyMatcher, and relations.py its operators. matcher.py matches them to a tree; matches.py searches a whole text
once and keeps what it found.
"""
