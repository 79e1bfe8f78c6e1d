"""Sections of the report, a file each; section.py is what they fill."""
