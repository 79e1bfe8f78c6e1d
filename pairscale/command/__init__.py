"""Compose the configuration of any command, run its sweeps, and print its help and errors.

Start with main.py. compose.py and schemas.py build a configuration. pool.py and worker.py run a sweep.
"""
