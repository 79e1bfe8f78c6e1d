"""Sections of the report, a file each (a new one here or in a plug-in); section.py: the registry, and their data."""
