"""The command: surprisals of a text's words for each model, in files, and a table of their means.

<paths.reports>/<study>/surprisal/<file>/<run>.parquet, .csv     of a study's runs
<paths.reports>/surprisal/<file>/<model>.parquet, .csv           of a pretrained model
"""

import dataclasses
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from eval.benchmarks.files import format_of
from eval.config import EvalConfig, PretrainedConfig, recorded_policy
from eval.scorers.base import Execution, Scorer
from eval.scorers.load import pretrained_scorer, run_scorer
from eval.surprisal.files import VERSION, read_surprisals, write_surprisals
from eval.surprisal.texts import Text, read_texts
from eval.surprisal.words import text_surprisals
from pairscale.console import print_text, say
from pairscale.errors import ConfigError, RunError
from pairscale.files import sha256_file
from pairscale.tables import plain_table, print_table
from train.runs.folder import study_runs


def run(config: EvalConfig) -> None:
    """Write the surprisals of `config.text` for the model of model=hf_causal, or each run of `config.study`.

    Files that were made of the same text by the same model are kept. Raises ConfigError without a text or a model,
    InputError as `read_texts`, RunError where no run of the study reads a text from left to right.
    """
    if config.text is None:
        raise ConfigError("text=null: give text=FILE, a text or a table (--help)")
    path = Path(config.text).expanduser()
    texts = read_texts(path, config.surprisal)
    folder = Path(config.paths.reports) / (config.study or "") / "surprisal" / format_of(path, "text")[0]
    table = plain_table(f"surprisal of {path.name}")
    table.add_column("model")
    for heading in ("words", "bits a word", "perplexity", "unknown", "words/s"):
        table.add_column(heading, justify="right")
    for name, scorer in _scorers(config):
        file = folder / f"{re.sub(r'[^A-Za-z0-9._+-]+', '_', name)}.parquet"
        words, speed = surprisals(file, scorer, texts, _made(scorer, path, config), config)
        bits = float(words["surprisal"].mean())
        unknown = float((words["unk"] > 0).mean())
        table.add_row(name, f"{len(words):,}", f"{bits:.2f}", f"{2**bits:,.1f}", f"{unknown:.1%}", speed)
    console = Console(highlight=False)
    print_table(console, table, ("words/s", "perplexity", "unknown"))
    print_text(console, str(folder))


def surprisals(
    file: Path, scorer: Scorer, texts: Sequence[Text], made: dict[str, Any], config: EvalConfig
) -> tuple[pd.DataFrame, str]:
    """Return the surprisals of a file, and how many words a second were read, "" if it was `made` before; write it."""
    if file.exists():
        words, before = read_surprisals(file)
        if before == made:
            return words, ""
    start = time.monotonic()
    words = text_surprisals(scorer, texts, config.policy, config.surprisal.window, config.surprisal.step)
    speed = f"{len(words) / (time.monotonic() - start):,.0f}"
    write_surprisals(file, words, made)
    return words, speed


def _made(scorer: Scorer, path: Path, config: EvalConfig) -> dict[str, Any]:
    """Return what surprisals follow from (eval.surprisal.files.Made)."""
    return {
        "version": VERSION,
        "text": sha256_file(path),
        "model": {"name": scorer.name, "digest": scorer.digest},
        "tokenizer_digest": scorer.tokenizer_digest,
        "settings": scorer.settings,
        "policy": recorded_policy(config.policy, None, None),
        "reading": dataclasses.asdict(config.surprisal),
    }


def _scorers(config: EvalConfig) -> Iterator[tuple[str, Scorer]]:
    """Yield the name and the scorer of each model that reads from left to right; say why of another."""
    execution = Execution.of(config)
    if isinstance(config.model, PretrainedConfig):
        scorer = pretrained_scorer(config.model, execution)
        yield scorer.name, scorer
        return
    if config.study is None:
        raise ConfigError("study=null: name a study, or give model=hf_causal model.path=NAME")
    count = 0
    for folder in study_runs(config.paths.runs, config.study, config.run):
        scored = run_scorer(folder, execution) if folder.done else None
        if scored is None or scored.masked:
            say(f"{folder.path.name}: {'not done' if scored is None else 'a masked model'}", "no surprisal", "yellow")
            continue
        count += 1
        yield folder.path.name, scored
    if not count:
        raise RunError(f"study={config.study}: no run in {Path(config.paths.runs) / config.study} has surprisals")
