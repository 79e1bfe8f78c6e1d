"""How far a study is: `python -m analysis.status`."""
