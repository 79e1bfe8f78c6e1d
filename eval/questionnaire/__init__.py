"""Pairs put before people: forms.py deals them, page.py writes pages, answers.py and agreement.py read the answers."""
