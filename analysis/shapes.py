import pandas as pd
def fit_shapes(a): return pd.DataFrame()
def words_to_humans(a,h): return pd.DataFrame()
