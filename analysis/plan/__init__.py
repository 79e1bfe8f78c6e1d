"""The planner: which grid of sizes, seeds and pairs finds an effect, and what it costs.

Start at run.py, the command. pilot.py reads what runs vary by from a pilot study, or takes it as stated; grids.py has
the grids and their costs, power.py their power, check.py simulates the chosen one, section.py shows all of it.
"""
