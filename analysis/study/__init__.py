"""Make the long table of a study (long_table.py) from its run folders (run_folders.py) and score files."""
