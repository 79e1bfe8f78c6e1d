"""The runs of a study as tables: collected from run folders or W&B, combined with others, judged pair by pair."""
