"""Minimal pairs put before people: `python -m eval.questionnaire`.

forms.py draws the questions, page.py writes the page that opens in a browser; answers.py reads the answers that come
back and agreement.py measures how far people agree.
"""
