"""Statistics of graded acceptability over runs: agreement.py crosses runs and sentences for any statistic with an
influence function (eval/ratings/statistics.py).
"""
