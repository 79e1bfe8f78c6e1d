"""Score items other than pairs, such as questions of diagnostics, SyntaxGym suites, and rated sentences."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from corpora.words import count_characters, count_words
from eval.benchmarks.config import SYNTAXGYM, BenchmarkConfig, DiagnosticConfig, RatingsConfig, SyntaxGymConfig
from eval.benchmarks.files import Items
from eval.config import EvalConfig
from eval.diagnostics import measures as diagnostics
from eval.diagnostics.questions import answer_rows, candidates, load_questions
from eval.kinds.pairs import PairsWork
from eval.kinds.work import Work
from eval.methods.sides import Side
from eval.methods.unigrams import UnigramSource
from eval.published import COLUMNS, read_published
from eval.ratings import measures as ratings
from eval.ratings.sentences import load_ratings
from eval.scorers.base import TokenScores
from eval.scorers.next_words import NextWords
from eval.scores.files import read_answer_file, write_answers
from eval.scores.table import WIDTH, measures_table
from eval.syntaxgym import measures as suites
from eval.syntaxgym.suites import Suites, load_suites
from eval.syntaxgym.suites import answer_rows as region_rows
from pairscale.errors import InputError, RunError
from pairscale.sizes import plural
from pairscale.tables import filled_table

_INTERVALS = "Intervals: 95% confidence intervals for new items"


class ItemsWork(Work):
    """Items whose answers are always written to the same files.

    Attributes:
        files: Names in eval.scores.schemas.ANSWERS. Measures are computed from the last file.
    """

    files: ClassVar[tuple[str, ...]]
    items: Items

    def requested(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from ((name, {}) for name in self.files)

    @property
    def contents(self) -> str:
        return self.items.contents

    def score(self) -> None:
        texts = self.items.texts
        rows = self.rows(dict(zip(texts, self.ask(texts), strict=True)))
        write_answers(self.folder, rows, self.metadata[self.files[-1]])

    def ask(self, texts: list[str]) -> Sequence[Any]:
        """Return the model's answer to each text. By default, these are the scores of the text's tokens."""
        return self.scorer.score(texts, self.config.policy)

    @abstractmethod
    def rows(self, answers: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
        """Return the rows of each of `files`. `answers` maps texts to answers."""

    @classmethod
    @abstractmethod
    def measured(cls, folder: Path) -> pd.DataFrame:
        """Compute the measures of the score files in a folder. Raises RunError if a file is damaged."""

    def headline(self) -> dict[str, float | str]:
        """Return the first measure."""
        first = self.measured(self.folder).iloc[0]
        return {"note": f"{first['level']} {first['name']} {first['accuracy']:.3f}".replace("_", " ")}


class ClozeWork(ItemsWork):
    """The questions of a diagnostic."""

    files = ("topk", "cloze")

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Items:
        return load_questions(cast(DiagnosticConfig, config.benchmark))

    @classmethod
    def measured(cls, folder: Path) -> pd.DataFrame:
        rows, metadata = read_answer_file(folder, "cloze")
        return diagnostics.measures(metadata["benchmark"]["name"], rows)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"top_words": self.benchmark.top_words}

    @property
    def policy(self) -> dict[str, Any]:
        # The other settings don't affect answers, because <eos> isn't scored, and words with <unk> have no probability.
        matters = ("context", "context_tokens", "context_text", "precision", "pll", "pll_shift")
        return {name: value for name, value in super().policy.items() if name in matters and value is not None}

    def ask(self, texts: list[str]) -> Sequence[NextWords]:
        """Return, for each context, the probabilities of its candidates and the most probable next words."""
        words = candidates(self.items.rows)
        return self.scorer.next_words(
            texts, [words[text] for text in texts], self.benchmark.top_words, self.config.policy
        )

    def rows(self, answers: Mapping[str, NextWords]) -> dict[str, pd.DataFrame]:
        return answer_rows(self.items.rows, answers)

    def tables(self, width: int) -> Iterator[Table | Text]:
        """Yield a table of measures with published ones, and a sentence about words that the model cannot express."""
        published = read_published(self.benchmark.name, (*COLUMNS, "sd"))
        ours, theirs = (
            of.assign(name=of["name"].str.replace("_", " ")) for of in (self.measured(self.folder), published)
        )
        headings = {model: model for model in ("BERT base", "BERT large") if width >= WIDTH}  # Ettinger 2020, uncased
        caption = (
            f"Accuracy in %. {_INTERVALS} of this kind. ±: standard deviation over trials. Ties, and words that the "
            "model cannot express, count as errors. 'known' leaves out items with such words."
        )
        names = {"level": "measure", "name": "contexts"}
        yield measures_table(self.title + self.scored_already, caption, ours, theirs, names, headings)
        unknown = read_answer_file(self.folder, "cloze")[0].query("~expressible")
        items = unknown.groupby("candidate", sort=False)["item"].unique()
        if len(items):
            words = ", ".join(f"{word} ({', '.join(of)})" for word, of in items.items())
            number = f"{plural(len(items), 'word')} of {plural(unknown['item'].nunique(), 'item')}"
            yield Text(f"The model cannot express {number}: {words}")


class SuitesWork(ItemsWork):
    """SyntaxGym suites."""

    files = ("regions", "success")

    items: Suites

    @classmethod
    def measured(cls, folder: Path) -> pd.DataFrame:
        return suites.measures(read_answer_file(folder, "success")[0])

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Suites:
        benchmark = cast(SyntaxGymConfig, config.benchmark)
        return load_suites(benchmark.path, benchmark.suites)

    def requested(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the requested files. Raises InputError if the model is masked."""
        if self.scorer.masked:
            raise InputError(
                f"benchmark={SYNTAXGYM}: {self.scorer.name} is a masked model, so it can't compute surprisal from the "
                "text before a word. Use a causal model."
            )
        yield from super().requested()

    def rows(self, answers: Mapping[str, TokenScores]) -> dict[str, pd.DataFrame]:
        return region_rows(self.items, answers, skip_unk=self.config.policy.unk == "skip")

    def tables(self, width: int) -> Iterator[Table]:
        """Yield a table with a row for each overall score, circuit and suite."""
        measures, headings = self.measured(self.folder), {}
        caption = f"Success in %. {_INTERVALS}. Ties count as failures. 'known': items with no <unk> in their regions."
        if width >= WIDTH:
            headings = {"GRNN": "GRNN", "JRNN": "JRNN", "Transformer-XL": "TXL", "GPT-2": "GPT-2"}
            caption += f"\n{', '.join(headings.values())}: Hu et al. 2020"
        bold = (suites.OVERALL, suites.CIRCUIT)
        measures, published = measures[measures["level"].isin([*bold, suites.SUITE])], read_published(SYNTAXGYM)
        title, names = self.title + self.scored_already, {"name": "suites"}
        yield measures_table(title, caption, measures, published, names, headings, bold)


class RatingsWork(ItemsWork):
    """Rated sentences. Their measures are all computed from one file (eval/ratings/measures.py)."""

    files = ("sentences",)

    @classmethod
    def measured(cls, folder: Path) -> pd.DataFrame:
        return ratings.measures(read_answer_file(folder, "sentences")[0])

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Items:
        """Read the table. Raises the same errors as `load_ratings`, and InputError if agreement can't be computed."""
        items = load_ratings(cast(RatingsConfig, config.benchmark))
        if len(items.rows) < 3 or items.rows[["rating", "label"]].nunique().max() < 2:
            raise InputError(
                f"benchmark={config.benchmark.name}: this table has {plural(len(items.rows), 'sentence')}, with the "
                f"ratings {items.rows['rating'].unique()[:3]}. Use a table with at least three sentences and with "
                "different ratings or labels."
            )
        return items

    @cached_property
    def unigrams(self) -> UnigramSource:
        """The text in which tokens are counted."""
        return UnigramSource.of(self.run, self.config)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"unigrams": self.unigrams.described}

    @property
    def notes(self) -> tuple[str, ...]:
        missing = "norm_lp, slor and morcela are left out, because there are no unigram probabilities"
        return (*([f"{missing}: {self.unigrams.missing}."] if self.unigrams.missing else []), *super().notes)

    def rows(self, answers: Mapping[str, TokenScores]) -> dict[str, pd.DataFrame]:
        unigrams = None if self.unigrams.missing else self.unigrams.count(self.scorer)
        skip_unk, texts = self.config.policy.unk == "skip", list(answers)
        side = Side("sentence", pd.DataFrame({"sentence": texts}), list(answers.values()), skip_unk, unigrams)
        if not np.isfinite(side.lp).all():
            raise RunError(
                f"{self.scorer.name}: the model's score of a sentence is not a finite number. Try fp32 (model.dtype, "
                "policy.precision), and check that its weights aren't damaged."
            )
        reference = self.described["corpus"]["reference"]
        table = pd.DataFrame(
            {
                "lp": side.lp,
                "tokens": side.tokens,
                "words": [count_words(text, reference) for text in texts],
                "chars": [count_characters(text) for text in texts],
                "unk": side.unk,
                "unigram_lp": np.nan,
                "unseen": None,
            },
            index=pd.Index(texts, name="sentence"),
        )
        if unigrams is not None:
            table["unigram_lp"], table["unseen"] = unigrams.sums(side.scores, skip_unk)
        table.loc[~side.judged, ["lp", "unigram_lp"]] = np.nan
        return {"sentences": self.items.rows.join(table, on="sentence")}

    def tables(self, width: int) -> Iterator[Table]:
        """Yield a table with one row per score. Only the first two measures have intervals, to fit in a terminal."""
        measures, lines = self.measured(self.folder), []
        for name, of in measures.groupby("name", sort=False):
            intervals = [f"{low:.2f} to {high:.2f}" for low, high in of[["low", "high"]].to_numpy()[:2]]
            cells = zip_longest(of["accuracy"].map("{:.3f}".format), intervals, fillvalue="")
            lines.append([str(name), *chain.from_iterable(cells)])
        headings = chain.from_iterable((level, "95%") for level in measures["level"].unique())
        table = filled_table(["score", *headings], lines, ["score"])
        caption = "95%: confidence intervals for new sentences. morcela, accuracy and MCC are cross-validated."
        table.title, table.caption = Text(self.title + self.scored_already), Text(f"{self.contents}. {caption}")
        yield table


# The class that scores a benchmark, by the type of its configuration.
KINDS: dict[type[BenchmarkConfig], type[Work]] = {
    BenchmarkConfig: PairsWork,
    DiagnosticConfig: ClozeWork,
    RatingsConfig: RatingsWork,
    SyntaxGymConfig: SuitesWork,
}
