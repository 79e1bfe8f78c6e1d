"""The command `python -m analysis.plan`. Start at run.py; analysis/planner.py has the simulation."""
