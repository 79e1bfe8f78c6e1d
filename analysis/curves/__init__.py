"""Statistics of learning curves, as functions of tables and arrays.

fit.py is the entrance: slopes and their intervals. intervals.py, variance.py, designs.py and ranks.py stand behind it;
comparisons.py, matched_pairs.py, mixed_models.py, shapes.py and words_to_people.py ask further questions.
"""
