"""The papers' own tables and figures, made again from published accuracies, and their statements checked."""
