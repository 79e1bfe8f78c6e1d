"""Turn score files into learning curves, tables, figures and a report. The analysis never loads a model.

Everything starts from one long table. study/ builds it from run folders, and sources/ builds it from external results.
Each statistic (curves/) is a function that takes this table and returns another one:

    from analysis import accuracies, compare, fit_curves
    slopes = fit_curves(accuracies("mine"))

figures/ and report/ turn these tables into figures and sentences. run.py implements `python -m analysis`, and sections/
contains the sections of its report. items/ and reading/ analyse other kinds of benchmarks. results/ contains the
committed tables of our studies, and published/ contains results copied from papers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.ages import ages_of_acquisition
    from analysis.curves.ablations import ablation_effects, main_effects
    from analysis.curves.acquisition import words_to_threshold
    from analysis.curves.comparisons import compare
    from analysis.curves.fit import fit_curves, fitted_lines, lack_of_fit
    from analysis.curves.shapes import fit_shapes, words_to_humans
    from analysis.curves.units import unit_accuracies
    from analysis.study.long_table import accuracies, notes, pairs, problems, runs, trajectories

_MODULES = {
    "curves.ablations": ("ablation_effects", "main_effects"),
    "curves.acquisition": ("words_to_threshold",),
    "curves.comparisons": ("compare",),
    "curves.fit": ("fit_curves", "fitted_lines", "lack_of_fit"),
    "curves.shapes": ("fit_shapes", "words_to_humans"),
    "study.long_table": ("accuracies", "notes", "pairs", "problems", "runs", "trajectories"),
    "curves.units": ("unit_accuracies",),
    "ages": ("ages_of_acquisition",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ablation_effects", "accuracies", "ages_of_acquisition", "compare", "fit_curves", "fit_shapes",
    "fitted_lines", "lack_of_fit", "main_effects", "notes", "pairs", "problems", "runs", "trajectories",
    "unit_accuracies", "words_to_humans", "words_to_threshold",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a function when it is first used, because the functions need pandas."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'analysis' has no attribute '{name}'")
    return getattr(import_module(f"analysis.{_MODULE_OF[name]}"), name)
