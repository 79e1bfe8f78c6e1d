"""The run folder and what is in it: paths, manifest, metrics, exported model.

folder.py owns every path. No module but export.py imports torch.
"""
