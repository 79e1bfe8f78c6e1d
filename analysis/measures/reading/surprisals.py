"""Surprisals of the words of times, as `python -m eval.surprisal` wrote them for each model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.measures.reading.times import Times, words_rows
from eval.surprisal.files import read_surprisals
from pairscale.errors import RunError
from pairscale.files import sha256_file, write_text


@dataclass(frozen=True)
class Model:
    """A model's surprisals; words: a row for each row of Times.words: surprisal (bits), tokens, unk."""

    name: str
    words: pd.DataFrame
    made: Mapping[str, Any]

    @property
    def perplexity(self) -> float:
        """Per word of the texts: 2 to the mean surprisal of all words that have one."""
        return float(2 ** self.words["surprisal"].mean())

    @property
    def known(self) -> pd.Series:
        """True for each word that has tokens of its own, none of them `<unk>`."""
        return (self.words["tokens"] > 0) & (self.words["unk"] == 0)


def write_words(path: Path, times: Times) -> None:
    """Write the words for `python -m eval.surprisal`, unless the file holds them already."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in words_rows(times))
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def read_models(folder: Path, words: Path, times: Times, again: str) -> dict[str, Model]:
    """Return the models that have surprisals in `folder`, by the names of their files.

    words: the file of `write_words`. again: the command that makes the surprisals, for errors. Raises RunError for
    files of other words, and for models that read them in another way than others.
    """
    digest = sha256_file(words)
    models: dict[str, Model] = {}
    for file in sorted(folder.glob("*.parquet")):
        rows, made = read_surprisals(file)
        if made["text"] != digest or rows["word"].tolist() != times.words["word"].tolist():
            raise RunError(f"{file}: of other words than {words} ({_first_other(rows, times)}); again: {again}")
        models[file.stem] = Model(file.stem, rows[["surprisal", "tokens", "unk"]], made)
    first = next(iter(models.values()), None)
    for model in models.values():
        assert first is not None
        for key in ("policy", "reading"):
            if model.made[key] != first.made[key]:
                differing = [name for name, value in model.made[key].items() if value != first.made[key].get(name)]
                values = [
                    f"{name}={of.made[key].get(name)} of {of.name}" for name in differing for of in (first, model)
                ]
                raise RunError(f"{folder}: models that read the words in different ways: {', '.join(values)}")
    return models


def _first_other(rows: pd.DataFrame, times: Times) -> str:
    ours, theirs = times.words["word"].tolist(), rows["word"].tolist()
    for place, (word, other) in enumerate(zip(ours, theirs, strict=False)):
        if word != other:
            where = times.words.iloc[place]
            return f"word {where['number']} of text {where['text']} is {word!r} in the times, {other!r} there"
    if len(ours) != len(theirs):
        return f"{len(ours):,} words in the times, {len(theirs):,} there"
    return "the same words, in other sentences"
