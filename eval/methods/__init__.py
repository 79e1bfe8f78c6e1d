"""How scores become judgements: sums and prefixes, templates, prompts, votes.

scoring.py has the methods that a sentence's own tokens suffice for, prompting.py and templates.py those that put the
sentence into a text, voting.py those that count the votes of others; judging.py runs all of them in one pass.
"""
