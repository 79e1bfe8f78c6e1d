"""The report of a study, arranged and written.

report.py writes the page and its files, context.py collects what the page shows, provenance.py what is known of its
runs; tracking.py sends figures and tables to a tracker.
"""
