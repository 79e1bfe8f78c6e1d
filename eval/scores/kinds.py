"""What folders of scores are of, by their names (eval.config.score_label)."""

from eval.diagnostics.diagnostic import is_diagnostic
from eval.syntaxgym.config import is_syntaxgym


def is_of_pairs(label: str) -> bool:
    """Return True if a folder of scores named `label` is of minimal pairs; False: of a diagnostic, or of suites."""
    return not (is_diagnostic(label) or is_syntaxgym(label))
