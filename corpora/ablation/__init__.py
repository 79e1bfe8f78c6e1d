"""Remove a construction from samples, keep nothing else, rewrite it, or remove as much other text as a control.

Start at intervention.py: it turns the matches of a filter (corpora/constructions/) into the sentences that samples skip
and rewrite, and lists them. control.py draws the matched control, and rewriting.py rewrites sentences.
"""
