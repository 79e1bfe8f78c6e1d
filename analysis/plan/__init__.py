"""The command `python -m analysis.plan`. Start at run.py; analysis/plan/planner.py has the simulation."""
