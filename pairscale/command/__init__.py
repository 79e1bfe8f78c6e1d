"""The frame behind every command (start with main.py): composing, running, sweeps, launchers, help, errors."""
