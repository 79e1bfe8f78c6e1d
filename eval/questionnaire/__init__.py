"""Ask people to judge minimal pairs, with `python -m eval.questionnaire`.

forms.py draws the questions, and writes them to pages for a browser (page.html). answers.py reads the answers, and
measures how much people agree with the benchmark.
"""
