"""The analysis command: collect a study, fit its curves, print the main table, write the report.

python -m analysis study=NAME                              from run folders
python -m analysis study=NAME format=md|ipynb              as Markdown or as a notebook in place of a page
python -m analysis study=NAME+OTHER                        of several studies, side by side
python -m analysis study=NAME analysis.model=hierarchical  one hierarchical model beside the default intervals
python -m analysis study=NAME analysis.children=FILE       words beside the age at which children know them
python -m analysis study=NAME people=FOLDER                beside people who answered a questionnaire on the pairs
python -m analysis source=wandb project=ENTITY/PROJECT     from Weights & Biases
python -m analysis source=table path=FILE                  of others' published accuracies
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console
from rich.markup import escape

from analysis.config import COUNT, HIERARCHICAL, AnalysisConfig
from analysis.curves.ablations.ablations import Ablations, compare_ablations
from analysis.curves.acquisition.acquisition import acquire
from analysis.curves.fit import ALL_PAIRS, fit_curves
from analysis.curves.groups import few_notes, with_least_runs
from analysis.curves.hierarchical.fit import Hierarchical, check_sampler, fit_hierarchical, iterations
from analysis.curves.robustness.faulty import faulty_changes
from analysis.curves.units import units_of
from analysis.exhibits.sentences.ablations import ablation_findings
from analysis.exhibits.sentences.curves import extent, slope_notes, warnings
from analysis.exhibits.sentences.findings import comparisons, correlation, findings
from analysis.exhibits.sentences.hierarchical import hierarchical_findings
from analysis.exhibits.tables.curves import context_changes, curve_tables, write_curve_tables
from analysis.exhibits.tables.slopes import slope_table, terminal_table, with_published
from analysis.measures.ablations import direct_paradigms
from analysis.papers.papers import reproduce
from analysis.papers.reproduction import FOLDER, print_reproduction, write_reproduction
from analysis.report.report import write_report
from analysis.report.tracking import track_analysis
from analysis.sections.acquisition.children import children_sections
from analysis.sections.answers.diagnostics import diagnostic_section
from analysis.sections.answers.ratings import ratings_section
from analysis.sections.answers.syntaxgym import suites_section
from analysis.sections.people import people_of, read_people
from analysis.sections.pretrained_models import Judge, curves_beside, models_section, phenomena_of, published_beside
from analysis.sections.reading_times import reading_sections
from analysis.sections.section import Report, Section, TableSection, fill
from analysis.simulation.coverage import can_be_simulated, coverage_table, simulated_coverage
from analysis.study.baselines import baseline_judgements, check_curves
from analysis.study.collect import Study
from analysis.study.combine import combine, common_labels
from analysis.study.faulty import without_faulty
from analysis.study.judgements import Judgements, labels_of, no_such_scores
from analysis.study.names import set_apart
from analysis.study.sources.source import FILES, WANDB, requested_source, sources
from eval.config import is_of_pairs
from eval.published import on_paradigms, read_published
from eval.questionnaire.answers import Sheet
from eval.ratings.config import is_ratings
from eval.scores.names import benchmark_names
from eval.sweeps import study_commands
from eval.syntaxgym.config import is_syntaxgym
from pairscale.console import print_text
from pairscale.errors import ConfigError
from pairscale.progress import with_progress
from pairscale.tables import print_table


def analyse(config: AnalysisConfig) -> None:
    """Analyse a study on all benchmarks that it was scored on, or on the one that the command line names."""
    if config.format == "huggingface":
        raise ConfigError("format=huggingface: of python -m eval.export; a report has format=html, md or ipynb")
    source = requested_source(config)
    if config.published:
        _published(config)
        return
    if config.analysis.model == HIERARCHICAL:
        check_sampler()
    studies = source.collect(config)
    study, names = studies[0] if len(studies) == 1 else combine(studies), [study.name for study in studies]
    check_curves(study)
    study = set_apart(study)
    chosen = any(override.partition("=")[0] == "benchmark" for override in HydraConfig.get().overrides.task)
    labels, notes = common_labels(study, names, config.benchmark.name if chosen else None)
    analysis = Analysis(study, config, Console(), Console(stderr=True, highlight=False), benchmark_names(labels))
    runs = config.paths.runs if config.source in (FILES, WANDB) else None  # others' numbers have no commands of ours
    commands = [command for name in names for command in study_commands(runs, name)] if runs else []
    several = sum(len(of.runs) + len(of.unplaced) > 0 for of in studies) > 1
    report = analysis.report(labels, notes, several=several, commands=commands)
    folder = Path(config.paths.reports) / study.name
    if config.source != FILES:  # in a folder of its own, as run folders give a fuller report
        folder = folder.with_name(f"{study.name}+{config.source}")
    with analysis.quiet.status("writing the report"):
        path = write_report(folder, report)
        for section in report.sections.values():
            write_curve_tables(folder, report.file_label(section), section.judged, section.tables)
    track_analysis(folder, report)
    analysis.console.print(f"report: {path}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Analysis:
    """An analysis in progress: results go to `console`, progress and notes to `quiet`; `names`: of benchmarks."""

    study: Study
    config: AnalysisConfig
    console: Console
    quiet: Console
    names: Mapping[str, str]

    @property
    def judge(self) -> Judge:
        """The function that reads judgements of the study, without faulty pairs if they are to be left out."""
        read = sources()[self.config.source].judge
        if self.config.analysis.faulty_pairs == COUNT:
            return read
        return lambda study, label, method, ties: without_faulty(read(study, label, method, ties))

    def report(self, labels: Sequence[str], notes: list[str], several: bool, commands: Sequence[str]) -> Report:
        """Analyse each benchmark, print its main results, and return the whole; `notes`: of `common_labels`."""
        sections: dict[str, Section] = {}
        tables: list[TableSection] = []
        answers = read_people(self.config, self.study, labels)
        for label in labels:
            if not is_of_pairs(label):
                tables.append(self._items(label))
                continue
            if any(label in labels_of(self.study, run) for run in self.study.runs.index):
                sections[label] = self._curves(label, notes, answers.get(label, []))
            models = self._models(label, sections.get(label))
            if models is not None:
                tables.append(models)
            elif label not in sections:
                raise no_such_scores(self.study, label, self.config.analysis.method, [])
        tables += children_sections(self.study, self.config)
        tables += reading_sections(self.config.paths.reports, self.study, self.config.analysis.confidence)
        judged = {label: section.judged for label, section in sections.items()}
        for label, changes in context_changes(judged, self.config.analysis.confidence).items():
            sections[label].tables["context"] = changes
        report = Report(self.study, self.config, sections, tables, several, commands)
        for label, section in sections.items():
            with self.quiet.status(f"{escape(self.names[label])}: comparing methods, reading pairs and trajectories"):
                fill(section, report)
        return report

    def _curves(self, label: str, notes: list[str], sheets: Sequence[Sheet]) -> Section:
        """Fit the curves of a benchmark and print their slopes; `sheets`: answers of people to its pairs."""
        config, benchmark = self.config.analysis, label.partition("+")[0]
        with self.quiet.status(f"{escape(self.names[label])}: reading scores"):
            whole = sources()[self.config.source].judge(self.study, label, config.method, self.config.ties)
            judged = whole if config.faulty_pairs == COUNT else without_faulty(whole)
            fitted = with_least_runs(judged, config.least_runs)
            judged.notes[:] = [*few_notes(judged.runs, config.least_runs), *judged.notes, *notes]
        extent_text = f"{len(judged.runs)} runs on {judged.pairs_text}"
        with self.quiet.status(f"{escape(self.names[label])}: fitting curves to {extent_text}"):
            baselines = baseline_judgements(self.study, judged, self.judge, self.config.ties)
            curves = fit_curves(fitted, config, baselines, judged)
        curves.slopes = with_published(curves.slopes, judged.runs, benchmark)
        published = on_paradigms(read_published(benchmark), phenomena_of(judged))
        people = people_of(sheets, self.study, judged, self.config) if sheets else None
        if people:
            published = people.beside(published)
        with self.quiet.status(f"{escape(self.names[label])}: comparing shapes and slopes, words to reach people"):
            tables = curve_tables(fitted, published, config, people.accuracy if people else None)
        tables["faulty-pairs"] = faulty_changes(with_least_runs(whole, config.least_runs))
        section = Section(judged, curves, published, tables, people, baselines, fitted)
        section.ablations = self._ablations(judged, baselines)
        if section.ablations:
            tables |= section.ablations.tables
            section.effects = ablation_findings(section.ablations, config)
            judged.notes += section.ablations.notes
        with self.quiet.status(f"{escape(self.names[label])}: order of acquisition and shapes"):
            section.acquisition = acquire(fitted, config, baselines)
        if section.acquisition:
            tables |= section.acquisition.tables
        self._coverage(section)
        self._hierarchical(section)
        section.findings = findings(curves, judged.unit, config.confidence, tables.get("mixed-model"))
        section.correlations = correlation(curves.slopes, config.confidence)
        differences = tables["slope-differences"]
        section.comparisons = comparisons(differences, curves.slopes, judged.unit, config.confidence)
        self._print_curves(section)
        return section

    def _coverage(self, section: Section) -> None:
        """Simulate studies like this one, if that is asked for, and count how often its intervals hold."""
        config, judged = self.config.analysis, section.fitted
        if not config.coverage:
            return
        if reason := can_be_simulated(judged):
            judged.notes.append(f"analysis.coverage=true: {reason}, so no studies like this one were simulated.")
            return
        studies = simulated_coverage(judged, section.curves.slopes, config)
        what = f"{self.names[judged.label]}: simulating studies like this one"
        results = [*with_progress(studies, what, config.coverage_studies, "studies")]
        section.tables["simulated-coverage"] = coverage_table(results, units_of(judged.pairs))

    def _hierarchical(self, section: Section) -> None:
        """Sample the hierarchical model, if that is asked for, and add its tables and findings."""
        config, judged = self.config.analysis, section.fitted
        if config.model != HIERARCHICAL:
            return
        what = f"{self.names[judged.label]}: sampling the hierarchical model"
        steps = fit_hierarchical(judged, section.curves, config)
        *_, result = with_progress(steps, what, iterations(config), "draws")
        if not isinstance(result, Hierarchical):
            judged.notes.append(f"analysis.model=hierarchical: {result}, so there is no such model.")
            return
        judged.notes += [f"{note}." for note in result.notes]
        section.hierarchical = result
        section.pooled = hierarchical_findings(result, judged.unit, config.confidence)
        if not result.diagnosis.refused:
            section.tables["hierarchical-rank-probabilities"] = result.ranks

    def _ablations(self, judged: Judgements, baselines: Judgements | None) -> Ablations | None:
        """Compare the runs of a study's interventions, if it has any."""
        direct = direct_paradigms(judged.runs, self.study.config, judged.label.partition("+")[0])
        with self.quiet.status(f"{escape(self.names[judged.label])}: comparing ablations with their controls"):
            return compare_ablations(judged, direct, self.config.analysis, baselines)

    def _print_curves(self, section: Section) -> None:
        """Print warnings, findings and the table of slopes, in the order of the page."""
        judged, table = section.judged, slope_table(section.curves, ALL_PAIRS)
        method = judged.method_names + (f", mean over {judged.over}" if judged.over else "")
        heading = f"{self.study.name} · {self.names[section.label]} · {method}"
        notes = section.respondents.counted.notes if section.respondents else []
        self._print_notes([*warnings(judged, self.config.ties, section.fitted), *notes])
        title = f"{heading} · {extent(judged.runs)}"
        print_text(self.console, title, style="bold")
        findings_of = [section.effects, section.findings, section.correlations, section.comparisons, section.pooled]
        for finding in (finding for of in findings_of for finding in of):
            print_text(self.console, f"{finding.subject}: {finding.full}")
        slopes = terminal_table(table, heading, self.config.analysis.confidence)
        print_table(self.console, slopes, ("rank", "R2"))
        self._print_notes(slope_notes(table))

    def _models(self, label: str, section: Section | None) -> TableSection | None:
        """Tabulate models without a place on a curve, if any, beside the curves of `section` at their largest sizes."""
        benchmark = label.partition("+")[0]
        beside = published_beside(read_published(benchmark), benchmark)
        if section is not None:
            beside = pd.concat([curves_beside(section.curves), beside], ignore_index=True)
        with self.quiet.status(f"{escape(self.names[label])}: reading scores of models"):
            models = models_section(self.study, label, self.judge, beside, self.config.analysis, self.config.ties)
        if models is not None:
            self._print_exhibits(f"{self.study.name} · {self.names[label]} · models", models, ("accuracies",))
            self._print_notes(models.warnings)
        return models

    def _items(self, label: str) -> TableSection:
        """Tabulate a diagnostic, suites or ratings, and print the main tables and findings."""
        section_of = diagnostic_section
        if is_syntaxgym(label):
            section_of = suites_section
        elif is_ratings(label):
            section_of = ratings_section
        with self.quiet.status(f"{escape(self.names[label])}: reading answers"):
            section = section_of(self.study, label, self.config.analysis.confidence)
        main = ("prediction", "sensitivity", "circuits", "scores" if is_ratings(label) else "")
        self._print_exhibits(f"{self.study.name} · {self.names[label]}", section, main)
        for finding in section.findings:
            print_text(self.console, f"{finding.subject}: {finding.full}")
        return section

    def _print_exhibits(self, heading: str, section: TableSection, names: tuple[str, ...]) -> None:
        self.console.print(heading, style="bold", markup=False)
        for exhibit in section.exhibits:
            if exhibit.name in names:
                for part in exhibit.terminal(self.console.width):
                    self.console.print(part)

    def _print_notes(self, notes: list[str]) -> None:
        for text in notes:
            print_text(self.quiet, text, "note", "yellow")


def _published(config: AnalysisConfig) -> None:
    """Write the papers' tables and figures from the published numbers: no study, no runs."""
    overrides = [override.lstrip("+~") for override in HydraConfig.get().overrides.task]
    used = ("published=", "paths.", "analysis.figure")
    unused = [override for override in overrides if not override.startswith(used)]
    if unused:
        raise ConfigError(f"published=true: takes paths.reports and analysis.figure; leave out {', '.join(unused)}")
    papers, console = reproduce(), Console()
    print_reproduction(console, papers)
    with Console(stderr=True, highlight=False).status("writing the report"):
        path = write_reproduction(Path(config.paths.reports) / FOLDER, papers, config.analysis.figure)
    console.print(f"report: {path}", markup=False, soft_wrap=True)
