"""Find the sentences with a construction, using patterns over their dependency trees or a regular expression.

patterns.py defines patterns, in the syntax of spaCy's DependencyMatcher, and rules, which rewrite a match. matcher.py
matches patterns to a tree. matches.py searches a whole text once, and stores what it finds.
"""
