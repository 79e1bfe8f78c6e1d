"""The find command: what a filter matches in an annotated corpus, how often, and how reliably.

run.py prints counts and sentences, marked.py shows a match in its sentence or tree, and sheet.py estimates precision
and recall from sentences that a person judges.
"""
