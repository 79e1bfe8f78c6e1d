"""From score files to curves, tables, figures and the report. Never loads a model.

run.py is the command: study/ collects judgements, curves/ and measures/ compute, sections/ turn results into exhibits/
(tables, figures, sentences), report/ writes the page from the templates in page/. papers/ does the same with the
papers' published accuracies (published/), status/ says how far a study is. results/ holds committed tables of studies.
"""
