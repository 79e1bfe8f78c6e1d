"""The report of a study: its page and files (report.py), what they show, and what a tracker gets (tracking.py)."""
