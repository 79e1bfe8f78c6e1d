"""The long table of a study, from its run folders (run_folders.py) and score files (score_files.py): long_table.py."""
