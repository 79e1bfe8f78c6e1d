"""The frame behind every command: composing the configuration, running, sweeps, launchers, help, errors in one line.

Start with main.py. rooms.py names, as strings, the two modules above this package that commands need.
"""
