"""What `python -m analysis` does: collect a study, fit curves, print the main table, write the report.

python -m analysis study=NAME                              from run folders
python -m analysis study=NAME+OTHER                        of several studies, side by side
python -m analysis study=NAME people=FOLDER                beside people who answered a questionnaire on the pairs
python -m analysis source=wandb project=ENTITY/PROJECT     from what was tracked in Weights & Biases
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console
from rich.markup import escape

from analysis.config import AnalysisConfig
from analysis.curves.fit import ALL_PAIRS, fit_curves
from analysis.exhibits.sentences import diagnostics as diagnostic_sentences
from analysis.exhibits.sentences.curves import extent, warnings
from analysis.exhibits.sentences.findings import comparisons, findings
from analysis.exhibits.tables.curves import context_changes, curve_tables, write_curve_tables
from analysis.exhibits.tables.slopes import slope_table, terminal_table, with_published
from analysis.measures.diagnostics import diagnosed
from analysis.papers.papers import reproduce
from analysis.papers.reproduction import FOLDER, print_reproduction, write_reproduction
from analysis.report.report import write_report
from analysis.report.wandb import track_analysis
from analysis.sections.diagnostics import diagnostic_exhibits
from analysis.sections.people import options, people_of, read_people
from analysis.sections.pretrained_models import Judge, curves_beside, models_section, published_beside
from analysis.sections.section import DIAGNOSTICS, Report, Section, TableSection, fill
from analysis.study.collect import Study, collect
from analysis.study.combine import combine, common_labels, names_of
from analysis.study.judgements import is_diagnostic, judgements, labels_of, no_such_scores
from analysis.study.untrained import untrained_judgements
from analysis.study.wandb import collect_tracked, project_runs, tracked_judgements
from eval.published import read_published
from eval.questionnaire.answers import Sheet
from eval.sweeps import asked_commands, asked_runs
from pairscale.errors import ConfigError


def analyse(config: AnalysisConfig) -> None:
    """Analyse a study: all benchmarks that it was scored on, or the one that the command line names."""
    if config.published:
        _published(config)
        return
    read = _tracked if config.source == "wandb" else _from_files
    study, names = read(config)
    chosen = any(override.partition("=")[0] == "benchmark" for override in HydraConfig.get().overrides.task)
    console, quiet = Console(), Console(stderr=True, highlight=False)
    sections: dict[str, Section] = {}
    without_curves: list[TableSection] = []
    labels, alone = common_labels(study, names, config.benchmark.name if chosen else None)
    answered = read_people(config, study, labels)
    for label in labels:
        if is_diagnostic(label):
            without_curves.append(_diagnosed(study, label, config, console, quiet))
            continue
        if any(label in labels_of(study, run) for run in study.runs.index):
            sheets = answered.get(label, [])
            sections[label] = _on_curves(study, label, config, alone, sheets, console, quiet)
        models = _models(study, label, config, sections.get(label), console, quiet)
        if models is not None:
            without_curves.append(models)
        elif label not in sections:
            raise no_such_scores(study, label, config.analysis.method, [])
    folder, source = Path(config.paths.reports) / study.name, []
    if config.source == "wandb":  # in a folder of its own, as run folders give a fuller report
        folder = folder.with_name(f"{study.name}+wandb")
        source = [f"source={config.source}", f"project={config.project}"]
    judged = {label: section.judged for label, section in sections.items()}
    for label, changes in context_changes(judged, config.analysis.confidence).items():
        sections[label].tables["context"] = changes
    report = Report(study, config, sections, several=len(names) > 1)
    for label, section in sections.items():
        with quiet.status(f"{escape(label)}: comparing methods, reading pairs and trajectories"):
            fill(section, report)
    with quiet.status("writing the report"):
        path = write_report(
            folder,
            study.name,
            [*sections.values()],
            config.analysis,
            config.ties,
            [command for name in names for command in asked_commands(config.paths.runs, name)],
            [*source, *options(config)],
            without_curves,
        )
        for section in sections.values():
            write_curve_tables(folder, section.judged, section.tables, config.analysis.method)
    track_analysis(study.name, folder, [*sections.values()], config)
    console.print(f"report: {path}", markup=False, soft_wrap=True)


def _on_curves(
    study: Study,
    label: str,
    config: AnalysisConfig,
    alone: list[str],
    sheets: list[Sheet],
    console: Console,
    quiet: Console,
) -> Section:
    """Fit the curves of a benchmark and print their slopes; its exhibits are made when all benchmarks are read.

    `alone`: notes on what not all studies were scored on. `sheets`: answers of people to its pairs.
    """
    benchmark = label.partition("+")[0]
    with quiet.status(f"{escape(label)}: reading scores"):
        judged = _judge(config)(study, label, config.analysis.method, config.ties)
        judged.notes += alone
    with quiet.status(f"{escape(label)}: fitting curves to {len(judged.runs)} runs on {judged.n_pairs:,} pairs"):
        curves = fit_curves(judged, config.analysis, untrained_judgements(study, judged, _judge(config), config.ties))
    curves.slopes = with_published(curves.slopes, judged.runs, benchmark)
    published = read_published(benchmark)
    people = people_of(sheets, study, judged, config) if sheets else None
    if people:
        published = people.beside(published)
    with quiet.status(f"{escape(label)}: comparing shapes and slopes, words to reach people"):
        tables = curve_tables(judged, published, config.analysis, people.accuracy if people else None)
    section = Section(judged, curves, published, tables, people)
    confidence = config.analysis.confidence
    compared = comparisons(tables["slope-differences"], curves.slopes, judged.unit, confidence)
    section.found = [*findings(curves, judged.unit, confidence), *compared]
    _print_section(study, section, config, console, quiet)
    return section


def _print_section(study: Study, section: Section, config: AnalysisConfig, console: Console, quiet: Console) -> None:
    """What carries the result, the findings and the table of slopes, in the order of the page."""
    judged, table = section.judged, slope_table(section.curves, ALL_PAIRS)
    made_by = judged.method + (f", mean over {judged.over}" if judged.over else "")
    heading = f"{study.name} · {section.label} · {made_by}"
    _print_notes([*warnings(judged, config.ties), *(section.asked.counted.notes if section.asked else [])], quiet)
    console.print(f"{heading} · {extent(judged.runs)}", style="bold", markup=False, highlight=False, soft_wrap=True)
    for about, text in section.found:
        console.print(f"{about}: {text}", markup=False, highlight=False, soft_wrap=True)
    console.print(terminal_table(table, heading, config.analysis.confidence))
    _print_notes(sorted({f"{group}: {note}." for group, note in table[["group", "note"]].to_numpy() if note}), quiet)


def _judge(config: AnalysisConfig) -> Judge:
    return tracked_judgements if config.source == "wandb" else judgements


def _models(
    study: Study, label: str, config: AnalysisConfig, section: Section | None, console: Console, quiet: Console
) -> TableSection | None:
    """The section of models without a place on a curve, if there are any; their accuracies are printed.

    `section`: that of the same benchmark's curves, which stand beside them at their largest sizes.
    """
    beside = published_beside(read_published(label.partition("+")[0]), label.partition("+")[0])
    if section is not None:
        beside = pd.concat([curves_beside(section.curves), beside], ignore_index=True)
    with quiet.status(f"{escape(label)}: reading scores of models"):
        chosen = config.analysis
        found = models_section(study, label, _judge(config), chosen.method, config.ties, chosen.confidence, beside)
    if found is not None:
        _print_exhibits(f"{study.name} · {label} · models", found, ("accuracies",), console)
        _print_notes(found.warnings, quiet)
    return found


def _diagnosed(study: Study, label: str, config: AnalysisConfig, console: Console, quiet: Console) -> TableSection:
    """The section of a diagnostic; its main tables are printed."""
    with quiet.status(f"{escape(label)}: reading answers"):
        found = diagnosed(study, label)
    section = TableSection(
        label,
        label,
        DIAGNOSTICS,
        diagnostic_sentences.extent(found),
        diagnostic_sentences.warnings(found),
        diagnostic_exhibits(found, config.analysis.confidence),
        diagnostic_sentences.methods(found),
        found.problems,
        found.runs,
        found.digest,
    )
    _print_exhibits(f"{study.name} · {label}", section, ("prediction", "sensitivity"), console)
    return section


def _print_exhibits(heading: str, section: TableSection, names: tuple[str, ...], console: Console) -> None:
    console.print(heading, style="bold", markup=False)
    for exhibit in section.exhibits:
        if exhibit.name in names:
            for part in exhibit.terminal(console.width):
                console.print(part)


def _print_notes(notes: list[str], quiet: Console) -> None:
    for text in notes:
        quiet.print("[yellow]note[/]", escape(text), soft_wrap=True)


def _from_files(config: AnalysisConfig) -> tuple[Study, list[str]]:
    if config.study is None:
        folder = Path(config.paths.runs)
        known = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        raise ConfigError(f"study=null: give the name of a study; in {folder} there are: {', '.join(known) or 'none'}")
    names = names_of(config.study, config.paths.runs)
    return _as_one([collect(config.paths.runs, name, _expected(config, name)) for name in names])


def _tracked(config: AnalysisConfig) -> tuple[Study, list[str]]:
    asked: list[str | None] = [None] if config.study is None else [*names_of(config.study)]
    found = [project_runs(config.project, name) for name in asked]
    return _as_one([collect_tracked(name, runs, str(config.project), _expected(config, name)) for name, runs in found])


def _as_one(studies: list[Study]) -> tuple[Study, list[str]]:
    """The study to analyse, and the names of those that it is made of."""
    return studies[0] if len(studies) == 1 else combine(studies), [study.name for study in studies]


def _expected(config: AnalysisConfig, study: str) -> dict[str, str]:
    return {run: asked.point for run, asked in asked_runs(config.paths.runs, study).items()}


def _published(config: AnalysisConfig) -> None:
    """The papers' tables and figures from the published numbers: no study, no runs."""
    given = [override.lstrip("+~") for override in HydraConfig.get().overrides.task]
    useless = [override for override in given if not override.startswith(("published=", "paths."))]
    if useless:
        raise ConfigError(f"published=true: takes paths.reports alone; leave away {', '.join(useless)}")
    papers = reproduce()
    console = Console()
    print_reproduction(console, papers)
    with Console(stderr=True, highlight=False).status("writing the report"):
        path = write_reproduction(Path(config.paths.reports) / FOLDER, papers)
    console.print(f"report: {path}", markup=False, soft_wrap=True)
