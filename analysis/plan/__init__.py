"""Plan studies with `python -m analysis.plan`. Start at run.py. The simulation is in planner.py."""
