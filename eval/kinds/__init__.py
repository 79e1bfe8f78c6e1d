"""The kinds of items that models are scored on: pairs, cloze questions, SyntaxGym's suites, rated sentences.

work.py has what all kinds share, registry.py the kind of each benchmark; the other modules are the kinds.
"""
