"""Sections of the report, a file each, registered with their place on the page.

section.py is the registry and what a section is given; every other file computes and words one section. A new section
is a new file, here or in a plug-in.
"""
