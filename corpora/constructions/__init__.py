"""Find the sentences with a construction by patterns over their dependency trees, or by a regular expression.

patterns.py defines the language of patterns, which is that of spaCy's DependencyMatcher, and of the rules that rewrite
a match. matcher.py matches patterns to a tree. matches.py searches a whole text once and stores what it found.
"""
