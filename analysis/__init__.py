"""From score files to curves, tables, figures and the report. Never loads a model.

Everything starts from one long table: `accuracies("mine")` (study.py), or others' numbers (sources/). Each statistic is
a function from that table to a table, each figure and sentence a function of those:

    from analysis import accuracies, compare, fit_curves
    slopes = fit_curves(accuracies("mine"))

units.py averages paradigms; curves.py, comparisons.py, shapes.py, acquisition.py and ablations.py have the statistics;
figures.py and findings.py show them. run.py is `python -m analysis`, report.py writes the page from sections/.
results/ has the committed tables of our studies, published/ the papers' own numbers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.ablations import ablation_effects
    from analysis.acquisition import compare_orders, words_to_threshold
    from analysis.comparisons import compare
    from analysis.curves import fit_curves, fitted_lines, lack_of_fit
    from analysis.shapes import fit_shapes, words_to_humans
    from analysis.study import accuracies, notes, pairs, problems, runs, trajectories
    from analysis.units import unit_accuracies

_MODULES = {
    "ablations": ("ablation_effects",),
    "acquisition": ("compare_orders", "words_to_threshold"),
    "comparisons": ("compare",),
    "curves": ("fit_curves", "fitted_lines", "lack_of_fit"),
    "shapes": ("fit_shapes", "words_to_humans"),
    "study": ("accuracies", "notes", "pairs", "problems", "runs", "trajectories"),
    "units": ("unit_accuracies",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ablation_effects", "accuracies", "compare", "compare_orders", "fit_curves", "fit_shapes", "fitted_lines",
    "lack_of_fit", "notes", "pairs", "problems", "runs", "trajectories", "unit_accuracies", "words_to_humans",
    "words_to_threshold",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a function when it is first used, since they need pandas."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'analysis' has no attribute '{name}'")
    return getattr(import_module(f"analysis.{_MODULE_OF[name]}"), name)
