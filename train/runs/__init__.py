"""Define the run folder and its contents (paths, manifest, metrics, exported model), and the names of curves.

Start with folder.py, which knows every path. Only model_folder.py imports torch.
"""
