"""The report: one HTML file that opens without a network. It only arranges what curves, tables and figures give it."""

from __future__ import annotations

import dataclasses
import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.figures.curves import OVERALL as OVERALL_LINE
from analysis.exhibits.figures.curves import learning_curves, perplexity_chart, slope_chart
from analysis.exhibits.figures.style import GREY, finished, side_by_side, style, write_figure
from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.methods import methods
from analysis.exhibits.tables.latex import write_csv
from analysis.exhibits.tables.slopes import slope_name, slope_table, write_latex
from analysis.exhibits.tables.text import rank_text, table_digits, title
from analysis.measures.perplexity import perplexity_curves
from analysis.page import write_page
from analysis.published import published_perplexity
from analysis.sections.section import CURVES, OVERALL, PEOPLE, Section, TableSection
from analysis.study.combine import SEPARATOR
from analysis.study.judgements import sized
from eval.scores.table import BESIDE
from pairscale.errors import RunError
from pairscale.files import only_process

RUN_COLUMNS = [
    "group", "size", "seed", "sample_words", "words_seen", "parameters", "words_per_s", "wall_s", "valid_ppl"
]  # fmt: skip


def write_report(
    folder: Path,
    study: str,
    sections: Sequence[Section],
    config: CurvesConfig,
    ties: str,
    commands: Sequence[str],
    source: Sequence[str] = (),
    tables: Sequence[TableSection] = (),
) -> Path:
    """Write report.html and, beside it, each table as CSV and LaTeX and each figure as SVG and PNG; returns its path.

    `study`: its name, or those of several joined by studies.SEPARATOR (their runs tell in the column `study`).
    `commands`: those that asked for the runs (asked_commands), which make them again.
    `source`: what the command line says of where the study was read from, unless that is run folders, and of people.
    Raises RunError where another process is writing it, WriteError where the disk refuses.
    """
    with only_process(folder / ".lock", folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another process is writing this report (process id {os.getpid()} gave way)")
        again = [*commands, _analysis_command(study, config, ties, source)]
        return _write_report(folder, study, sections, tables, config, ties, again)


def _write_report(
    folder: Path,
    study: str,
    sections: Sequence[Section],
    tables: Sequence[TableSection],
    config: CurvesConfig,
    ties: str,
    commands: list[str],
) -> Path:
    charts: dict[str, dict[str, Any]] = {}
    for section in sections:
        shown = _charts(section)
        _write_files(folder, section, {"slopes", "perplexity"} & shown.keys(), config, ties)
        charts |= {f"{section.label}-{name}": finished(chart) for name, chart in shown.items()}
        for exhibit in [*section.first, *section.exhibits]:
            prefix = f"{file_label(section, config)}-"
            exhibit.write(folder, prefix, **_made_by(section, ties))
            charts |= exhibit.specifications(prefix)
    for of in tables:
        for exhibit in of.exhibits:
            exhibit.write(folder, f"{of.file}-", **of.made_by, benchmark_digest=of.digest[:16])
            charts |= exhibit.specifications(f"{of.file}-")
        write_csv(folder / f"{of.file}-runs.csv", of.runs.drop(columns="manifest").reset_index())
        write_csv(folder / f"{of.file}-problems.csv", of.problems)
    context = {
        "study": study.replace(SEPARATOR, f" {SEPARATOR} "),
        "studies": _compared(folder, study, sections),
        "sections": [_section(section, config, ties) for section in sections],
        "tables": [_tables(section) for section in tables],
        "kinds": [*([CURVES] if sections else []), *dict.fromkeys(section.kind for section in tables)],
        "commands": commands,
    }
    path = folder / "report.html"
    write_page(path, "report.html", charts, context)
    return path


def _groups(section: Section) -> list[str]:
    return list(section.curves.slopes["group"].unique())


def _charts(section: Section) -> dict[str, Any]:
    """The interactive charts: as wide as the page lets them be."""
    charts = {
        f"curve-{i}": learning_curves(
            section.curves, group, people=section.people, unit=section.judged.unit, width="container"
        )
        for i, group in enumerate(_groups(section))
    }
    if section.curves.slopes["slope"].notna().any():
        charts["slopes"] = slope_chart(section.curves.slopes, width="container")
    if section.judged.runs["valid_ppl"].notna().any():
        charts["perplexity"] = perplexity_chart(section.judged.runs, unit=section.judged.unit, width="container")
    return charts


def file_label(section: Section, config: CurvesConfig) -> str:
    """What the names of a section's files begin with: methods other than lp have files of their own."""
    return section.label if config.method == "lp" else f"{section.label}-{config.method}"


def _write_files(folder: Path, section: Section, figures: set[str], config: CurvesConfig, ties: str) -> None:
    curves, judged = section.curves, section.judged
    label, made_by = file_label(section, config), _made_by(section, ties)
    panels = [learning_curves(curves, group, people=section.people, unit=judged.unit) for group in _groups(section)]
    write_figure(folder, f"{label}-curves", side_by_side(panels))
    if "slopes" in figures:
        write_figure(folder, f"{label}-slopes", slope_chart(curves.slopes))
    if "perplexity" in figures:
        write_figure(folder, f"{label}-perplexity", perplexity_chart(judged.runs, unit=judged.unit))
    for pairs in curves.slopes["pairs"].unique():
        table = slope_table(curves, pairs)
        name = f"{label}-slopes" if pairs == ALL_PAIRS else f"{label}-slopes-without-unk"
        write_csv(folder / f"{name}.csv", table.assign(**made_by))
        caption = _caption(section, pairs, config, ties)
        write_latex(folder / f"{name}.tex", table, caption, f"tab:{name}", config.confidence)
    write_csv(folder / f"{label}-paradigms.csv", slope_table(curves, level="paradigm").assign(**made_by))
    write_csv(folder / f"{label}-accuracies.csv", curves.accuracies.assign(**made_by))
    write_csv(folder / f"{label}-points.csv", curves.points.assign(**made_by))
    runs = section.judged.runs.drop(columns="manifest").reset_index()
    write_csv(folder / f"{label}-runs.csv", runs)
    write_csv(folder / f"{label}-problems.csv", section.judged.problems)


def _made_by(section: Section, ties: str) -> dict[str, str]:
    """Columns by which each table says what it was made of."""
    judged = section.judged
    return {"scores": judged.method, "ties": ties, "benchmark_digest": judged.digest[:16]}


def _caption(section: Section, pairs: str, config: CurvesConfig, ties: str) -> str:
    """What a table of slopes holds, for a paper."""
    intervals = sorted(set(section.curves.slopes["method"]))
    made_by = config.method + (f", mean over {section.judged.over}" if section.judged.over else "")
    return (
        f"Learning curves on {section.label}, {pairs} pairs: accuracy ({made_by}, ties {ties}) per doubling of "
        f"the training text, with {config.confidence:.0%} intervals for these pairs ({sentences.joined(intervals)})."
    )


def _section(section: Section, config: CurvesConfig, ties: str) -> dict[str, Any]:
    judged, curves = section.judged, section.curves
    table = slope_table(curves)
    paradigms = slope_table(curves, level="paradigm")
    phenomena = curves.slopes.loc[curves.slopes["level"] == "phenomenon", "name"].unique()
    look = style([title(name) for name in phenomena])
    of_paradigms = paradigms[paradigms["level"] == "paradigm"]
    return {
        "label": section.label,
        "file": file_label(section, config),
        "unit": judged.unit,
        "extent": sentences.extent(judged.runs),
        "people": section.asked.label if section.asked else "",
        "pairs": judged.n_pairs,
        "findings": section.found,
        "warnings": sentences.warnings(judged, ties),
        "methods": [*methods(judged, curves, config, ties), *([section.asked.told()] if section.asked else [])],
        "confidence": f"{config.confidence:.0%}",
        "groups": _groups(section),
        "legend": [*look.to_dict("records"), {"name": OVERALL_LINE, "colour": GREY, "dash": [1, 0], "stroke": 5}],
        "sizes": [str(column).removeprefix("accuracy ") for column in table if str(column).startswith("accuracy ")],
        "slopes": _records(table.assign(rank_text=table.apply(rank_text, axis=1))),
        "paradigms": _records(of_paradigms.assign(rank_text="")),
        "paradigm_count": f"All {sentences.plural(of_paradigms['name'].nunique(), 'paradigm')}",
        "slope_name": slope_name(table),
        "digits": table_digits(table["low"], table["high"]),
        "ranked": bool(table["r2"].notna().any()),
        "fit_tested": "lack_of_fit" in table,
        "published_slopes": "published_slope" in table and bool(table["published_slope"].notna().any()),
        "has_slopes": bool(table["slope"].notna().any()),
        "notes": sorted({f"{row['group']}: {row['note']}" for row in _records(table) if row["note"]}),
        "levels": _levels(section),
        "first": [exhibit.for_page(f"{file_label(section, config)}-") for exhibit in section.first],
        "exhibits": [exhibit.for_page(f"{file_label(section, config)}-") for exhibit in section.exhibits],
        "perplexity": _perplexity(section, config),
        "problems": _records(judged.problems),
        "runs": [_provenance(run, row) for run, row in judged.runs.iterrows()],
        "versions": _versions(judged.runs),
        "digest": judged.digest,
    }


def _tables(section: TableSection) -> dict[str, Any]:
    return {
        **{name: getattr(section, name) for name in ("label", "file", "kind", "extent", "warnings", "methods")},
        "findings": section.found,
        "exhibits": [exhibit.for_page(f"{section.file}-") for exhibit in section.exhibits],
        "problems": _records(section.problems),
        "runs": [_provenance(run, row) for run, row in section.runs.iterrows()],
        "versions": _versions(section.runs),
        "digest": section.digest,
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _levels(section: Section) -> dict[str, Any]:
    """Accuracy at each group's largest size, beside the published models and people: columns and rows."""
    at = section.curves.accuracies
    at = at[(at["pairs"] == ALL_PAIRS) & (at["level"] != "paradigm")]
    largest = at[at["words"] == at.groupby("group")["words"].transform("max")]
    ours = largest.pivot(index=["level", "name"], columns="group", values="accuracy")[_groups(section)]
    sizes = largest.drop_duplicates("group").set_index("group")["size"]
    theirs = section.published.pivot(index=["level", "name"], columns="model", values="accuracy")
    beside = BESIDE.get(section.label.partition("+")[0], {}) | ({PEOPLE: PEOPLE} if section.asked else {})
    columns = sorted((model for model in beside if model in theirs), key=lambda model: model == PEOPLE)
    both = ours.join(theirs[columns])
    order = both[ours.columns].mean(axis=1).sort_values(ascending=False).index
    rows = [
        {"level": level, "name": name, "values": [float(value) for value in both.loc[(level, name)]]}
        for level, name in sorted(order, key=lambda key: key[0] != OVERALL)
    ]
    ours_named = [
        {"name": group, "detail": f"at {sized(sizes[group], section.judged.unit)}", "ours": True}
        for group in ours.columns
    ]
    theirs_named = [
        {"name": beside[name], "ours": False,
         "detail": section.asked.label if section.asked and name == PEOPLE else "published"}
        for name in columns
    ]  # fmt: skip
    return {
        "columns": [*ours_named, *theirs_named],
        "rows": rows,
        "beside": sentences.beside(columns, section.asked is not None),
    }


def _perplexity(section: Section, config: CurvesConfig) -> dict[str, Any]:
    runs = section.judged.runs
    fits = perplexity_curves(runs, config.confidence)
    published = _records(published_perplexity()) if section.label == "blimp" else []
    oov = runs["valid_oov_rate"].max()
    return {"fits": _records(fits), "published": published, "oov": 0.0 if math.isnan(oov) else float(oov)}


def _provenance(run: Any, row: pd.Series) -> dict[str, Any]:
    """What one run was: readable fields first, then digests."""
    manifest = row["manifest"]
    git = manifest.get("git") or {}
    machine = manifest.get("machine") or {}
    corpus = manifest.get("corpus") or {}
    digests = {"configuration": manifest.get("config_digest"), "sample": corpus.get("sample", {}).get("digest")}
    digests |= {"text": corpus.get("text"), "tokenizer": corpus.get("tokenizer"), "weights": manifest.get("digest")}
    commit = git.get("commit")
    return {
        "run": run,
        **{name: row.get(name) for name in RUN_COLUMNS},
        "device": machine.get("device"),
        "threads": machine.get("threads"),
        "host": machine.get("host"),
        "ended": manifest.get("ended"),
        "commit": commit[:10] + (" with changes" if git.get("difference") else "") if commit else "unknown",
        "digests": {key: str(value)[:16] for key, value in digests.items() if value},
    }


def _versions(runs: pd.DataFrame) -> list[str]:
    """Distinct sets of versions that the runs were made with."""
    versions = [manifest.get("versions") or {} for manifest in runs["manifest"]]
    texts = {", ".join(f"{name} {version}" for name, version in of.items() if version) for of in versions}
    return sorted(texts - {""})


def _studies(study: str, sections: Sequence[Section]) -> list[str]:
    """The studies whose runs these are, in the order in which `study` names them."""
    return sorted({name for section in sections for name in section.judged.runs["study"]}, key=study.find) or [study]


def _compared(folder: Path, study: str, sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Of several studies, what the runs of each are, and where its own report is, if it has one."""
    names = _studies(study, sections)
    if len(names) < 2:
        return []
    runs = pd.concat([section.judged.runs for section in sections])
    runs = runs[~runs.index.duplicated()]
    return [
        {
            "name": name,
            "extent": sentences.extent(runs[runs["study"] == name]),
            "report": (folder.parent / name / "report.html").exists(),
            "command": f"python -m analysis study={shlex.quote(name)}",
        }
        for name in names
    ]


def _analysis_command(study: str, config: CurvesConfig, ties: str, source: Sequence[str]) -> str:
    chosen = [f"analysis.{name}={value}" for name, value in dataclasses.asdict(config).items()]
    return shlex.join(["python", "-m", "analysis", f"study={study}", *source, *chosen, f"ties={ties}"])
