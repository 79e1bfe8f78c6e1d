"""The frame behind every command: composing the configuration, running, sweeps, help, errors in one line.

Start with main.py; compose.py and schemas.py make a configuration, pool.py and worker.py run a sweep.
"""
