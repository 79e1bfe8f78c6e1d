"""The run folder and what is in it: paths, manifest, metrics, exported model; and what tells runs apart.

folder.py owns every path. Start there. No module but model_folder.py imports torch.
"""
