"""Several studies combined into one; where two have runs of one configuration, the study is in the group's name."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from analysis.study.collect import PROBLEMS, Study, by_group, group_names, with_interventions
from analysis.study.judgements import score_labels
from pairscale.errors import ConfigError, RunError

SEPARATOR = "+"  # between the names of studies on a command line, and in the name of their report
SHARED = "shared"


def names_of(study: str, runs: str | Path | None = None) -> list[str]:
    """Split `study` into names: "a+b" is two, unless `runs` has one study of just that name.

    Raises ConfigError if a name is empty or repeated.
    """
    if runs is not None and (Path(runs) / study).is_dir():
        return [study]
    names = study.split(SEPARATOR)
    if "" in names or len(set(names)) < len(names):
        raise ConfigError(f"study={study}: must be a study's name, or different ones joined by {SEPARATOR}, as in a+b")
    return names


def combine(studies: Sequence[Study]) -> Study:
    """Combine studies into one, whose runs are called <study>/<run id>.

    A run that several studies hold is counted once, in the first, and listed as a problem of the others. Raises
    RunError if one has curves over words and another over tokens seen, and if one has no run of its own.
    """

    def renamed(tables: Iterable[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
        return pd.concat([table.rename(index=f"{name}/{{}}".format) for name, table in tables])

    on_curves = [study for study in studies if len(study.runs)]
    counted = {study.name: study.runs["reference"].eq("tokens").all() for study in on_curves}
    if len(set(counted.values())) > 1:
        axes = "; ".join(f"{name} over {'tokens seen' if tokens else 'words'}" for name, tokens in counted.items())
        raise RunError(f"studies have curves over different units, which cannot share an axis: {axes}")
    table = renamed((study.name, study.runs) for study in on_curves or studies)
    configs = {f"{study.name}/{run}": config for study in studies for run, config in study.config.items()}
    first = _first(table)
    shared = [run for run, other in first.items() if run != other]
    for study in on_curves:
        held = {first[f"{study.name}/{run}"].partition("/")[0] for run in study.runs.index}
        if study.name not in held:
            raise RunError(f"study={study.name}: each of its runs is one of {', '.join(sorted(held))} too")
    table["group"], notes = group_names(table, configs)
    table["group"] = _apart(table, shared)
    table = with_interventions(table, configs)
    table["base"] = _apart(table.assign(group=table["base"]), shared)
    for study in studies:  # a study's notes on its own names may not hold for these
        notes += [note for note in study.notes if note not in group_names(study.runs, study.config)[1]]
    problems = [study.problems.assign(run=study.name + "/" + study.problems["run"]) for study in studies]
    twice = [{"run": run, "status": SHARED, "reason": f"the same as {first[run]}, which is counted"} for run in shared]
    return Study(
        name=SEPARATOR.join(study.name for study in studies),
        runs=by_group(table.drop(index=shared)),
        problems=pd.concat([*problems, pd.DataFrame(twice, columns=list(PROBLEMS))], ignore_index=True),
        notes=list(dict.fromkeys(notes)),
        config=configs,
        folders={f"{study.name}/{run}": folder for study in studies for run, folder in study.folders.items()},
        scores={f"{study.name}/{run}": scores for study in studies for run, scores in study.scores.items()},
        unplaced=renamed((study.name, study.unplaced) for study in studies),
        baselines=renamed((study.name, study.baselines) for study in studies),
    )


def _first(table: pd.DataFrame) -> dict[str, str]:
    """Return, for each run, the first one that it is a copy of: copies share an id and a start time."""
    firsts: dict[tuple[str, str], str] = {}
    manifests = {str(run): manifest for run, manifest in table["manifest"].items()}
    keys = {run: (run.partition("/")[2], manifest.get("started") or run) for run, manifest in manifests.items()}
    return {run: firsts.setdefault(key, run) for run, key in keys.items()}


def _apart(table: pd.DataFrame, shared: Sequence[str]) -> pd.Series:
    """Return names of groups, with the study where several have runs of that name and none in common."""
    groups = table["group"].copy()
    in_common = set(table.loc[list(shared), "group"])
    for group, of in table.groupby("group"):
        if of["study"].nunique() > 1 and group not in in_common:
            groups[of.index] = f"{group}, " + of["study"]
    return groups


def common_labels(study: Study, names: Sequence[str], benchmark: str | None) -> tuple[list[str], list[str]]:
    """Return the labels of scores (`score_labels`) that all combined studies have, and notes on the others.

    Raises RunError if there are none.
    """
    parts = {name: _part(study, name) for name in names}
    if len(names) > 1:  # studies of baselines alone have no curves to compare
        names = [name for name in names if len(parts[name].runs) or len(parts[name].unplaced)]
    if len(names) < 2:
        return score_labels(study, benchmark), []
    of = {name: score_labels(parts[name], benchmark) for name in names}
    everywhere = [label for label in of[names[0]] if all(label in labels for labels in of.values())]
    if not everywhere:
        scored = "; ".join(f"{name} on {', '.join(labels)}" for name, labels in of.items())
        problem = f"no benchmark was scored in the same way in all of them ({scored})"
        raise RunError(f"study={study.name}: {problem}; score one of them as the other was")
    alone = {name: [label for label in labels if label not in everywhere] for name, labels in of.items()}
    return everywhere, [
        f"Not compared, as not all studies were scored on it: {', '.join(labels)} of {name}."
        for name, labels in alone.items()
        if labels
    ]


def _part(study: Study, name: str) -> Study:
    runs = study.runs[study.runs["study"] == name]
    unplaced = study.unplaced.loc[[run for run in study.unplaced.index if str(run).startswith(f"{name}/")]]
    return Study(name, runs, study.problems, folders=study.folders, scores=study.scores, unplaced=unplaced)
