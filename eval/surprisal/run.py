"""Write the surprisals of a text's words, and print their means, for `python -m eval.surprisal`.

<paths.reports>/<study>/surprisal/<file>/<run>.parquet, .csv           for the runs of a study
<paths.reports>/<study>/surprisal/<file>/<run>@<step>.parquet, .csv    for their snapshots
<paths.reports>/surprisal/<file>/<model>.parquet, .csv                 for a pretrained model
"""

import dataclasses
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from eval.benchmarks.files import format_of
from eval.config import SurprisalCommand, recorded_policy
from eval.kinds.work import has_scores, score_metadata
from eval.run import check_failures, done_runs, load_at
from eval.scorers.base import Execution, Scorer
from eval.scorers.load import pretrained_scorer
from eval.scores.files import read_words, score_path, write_words
from eval.surprisal.texts import read_texts
from eval.surprisal.words import text_surprisals
from pairscale.command.line import current
from pairscale.console import print_text, say
from pairscale.errors import ConfigError
from pairscale.files import sha256_file
from pairscale.tables import filled_table, print_table
from train.models.config import PretrainedConfig
from train.runs.folder import RunFolder


def run(config: SurprisalCommand) -> None:
    """Write the surprisals of `config.text` for a pretrained model, or for each run of `config.study`.

    Surprisals of the same text and model are not computed again. Raises ConfigError if there is no text or no model.
    Raises InputError if the text can't be read, and RunError if the study has no causal model.
    """
    if config.text is None:
        raise ConfigError("Which text? Add text=FILE, a text file or a table (see --help).")
    pretrained = isinstance(config.model, PretrainedConfig)
    if config.study is None and not pretrained:
        raise ConfigError("Which models? Add study=NAME, or model=hf_causal model.path=NAME.")
    if not pretrained and current()["model"] is not None:
        raise ConfigError(
            f"model={config.model.name}: only pretrained models can be chosen with model=. For a run, use run=NAME."
        )
    if pretrained and config.run is not None:
        raise ConfigError(f"run={config.run} and model={config.model.name} both choose a model. Leave one of them out.")
    if pretrained and config.scoring.snapshots:
        raise ConfigError("scoring.snapshots=true: only the runs of a study have snapshots. Leave this setting out.")
    path, reading = Path(config.text).expanduser(), config.surprisal
    texts, name = read_texts(path, reading), format_of(path, "text")[0]
    items, parameters = {"name": name, "digest": sha256_file(path)}, dataclasses.asdict(reading)
    folder = Path(config.paths.reports) / (config.study or "") / "surprisal" / name
    runs, damaged = ([], 0) if pretrained else done_runs(config, "read", config.run)
    rows = []
    for model, scorer, moment in _scorers(config, runs):
        file = score_path(folder, re.sub(r"[^A-Za-z0-9._+-]+", "_", model), moment.get("step"))
        policy = recorded_policy(config.policy, None, config.policy.pll_shift)
        metadata = score_metadata(scorer.name, scorer, items, parameters, policy) | moment
        speed, start = "", time.monotonic()
        if not has_scores(file, metadata):
            words = text_surprisals(scorer, texts, config.policy, reading.window, reading.step)
            speed = f"{len(words) / (time.monotonic() - start):,.0f}"
            write_words(file, words, metadata)
        words, _ = read_words(file)
        bits, unknown = words["surprisal"].mean(), (words["unk"] > 0).mean()
        name = f"{model}@{moment['moment']}" if moment else model
        rows.append([name, f"{len(words):,}", f"{bits:.2f}", f"{2**bits:,.1f}", f"{unknown:.1%}", speed])
    table = filled_table(["model", "words", "bits per word", "perplexity", "unknown", "words/s"], rows, ["model"])
    console = Console(highlight=False)
    print_text(console, f"Surprisal of {path.name}")
    print_table(console, table, ("words/s", "perplexity", "unknown"))
    print_text(console, f"Written to {folder}")
    check_failures(config, "read", damaged, len(runs) + damaged)


def _scorers(config: SurprisalCommand, runs: Sequence[RunFolder]) -> Iterator[tuple[str, Scorer, dict[str, Any]]]:
    """Yield the name and the scorer of the pretrained model, or of each run.

    With scoring.snapshots=true, a run's snapshots follow it, with their step, words_seen and moment.
    """
    if isinstance(config.model, PretrainedConfig):
        scorer = pretrained_scorer(config.model, Execution.of(config))
        yield scorer.name, scorer, {}
    for run in runs:
        if config.scoring.snapshots and not run.snapshots:
            say(f"{run.path.name} has no snapshots. To keep some, train with trainer.snapshots=N.")
        for step in (None, *(run.snapshots if config.scoring.snapshots else ())):
            scorer, moment = load_at(run, config, step)
            yield run.path.name, scorer, moment
