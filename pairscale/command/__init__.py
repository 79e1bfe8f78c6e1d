"""The frame behind every command: it composes the configuration, runs sweeps, and prints help and errors.

Start with main.py. compose.py and schemas.py make a configuration; pool.py and worker.py run a sweep.
"""
