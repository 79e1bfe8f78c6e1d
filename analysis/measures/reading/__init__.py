"""Reading times: how much better surprisal lets a regression predict how long people read each word.

times.py is the table of words and times, forms.py reads it from the files of corpora of reading times, surprisals.py
reads what `python -m eval.surprisal` wrote; predictors.py makes the rows of the regressions, regressions.py fits them,
delta.py has the intervals of what surprisal adds, u_turn.py its test over training text; result.py is the file of all.
"""
