"""Scoring from Python, with the values of conf/ that the commands use (examples: docs/guides/python.md)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import pandas as pd

from eval.benchmarks.cells import sentence_of
from eval.config import PLAIN, PolicyConfig
from eval.methods.judging import MethodUse, judge_pairs
from eval.methods.method import fitting, methods
from eval.scorers.base import Scorer
from eval.scores.accuracy import outcome
from eval.scores.schemas import ITEMS
from eval.surprisal.words import text_surprisals
from pairscale.command.compose import compose
from pairscale.command.schemas import build
from pairscale.errors import ConfigError, InputError


def judge(
    scorer: Scorer,
    pairs: pd.DataFrame | Iterable[tuple[str, str]],
    methods: str | Sequence[str] = ("lp",),
    policy: PolicyConfig = PLAIN,
    language: str = "en",
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """Judge minimal pairs by one or more methods.

    pairs: good and bad sentences; or a table with the columns good and bad, any others of eval.scores.schemas.ITEMS
    (paradigm, pair_id, the fields of the prefix methods; without pair_id, it is the row's number), and your own.
    methods: by their names here or as papers write them ("LP", "MeanLP", "PLL"); of methods for causal and for masked
    models, those that fit the model are used. policy: by default that of conf/base.yaml. language: of the templates.
    overrides: of the methods' parameters, as on the command line ("method.pen_lp.alpha=0.6").

    Returns one row per method, pair and, where the method has them, template and trial: method, the columns of `pairs`
    with paradigm and pair_id, good_score and bad_score (in nats for methods that sum log-probabilities), outcome (1
    where good_score > bad_score, else 0), and the other columns of eval.scores.schemas.SCORES but the counts of words.
    Raises ConfigError for methods that do not exist or do not fit the pairs, or if none fits the model, and InputError
    for pairs without sentences or with one pair_id twice in a paradigm.
    """
    policy = build(PolicyConfig, asdict(policy), "policy.")  # whose values nobody has checked
    chosen = [methods] if isinstance(methods, str) else methods
    config = compose("eval", [f"method=[{','.join(_methods(chosen))}]", *overrides])
    table = pairs if isinstance(pairs, pd.DataFrame) else pd.DataFrame(list(pairs), columns=["good", "bad"])
    if table.empty:
        raise InputError("judge: no pairs")
    items = _items(table)
    fitted = fitting(config.method, scorer.masked)
    uses = {name: MethodUse.of(name, values, scorer, language) for name, values in fitted.items()}
    read = [use for use in uses.values() if not use.voters]
    rows = judge_pairs(scorer, items, read, policy).rows if read else {}
    for name, use in uses.items():
        if use.voters:
            if missing := [voter for voter in use.voters if voter not in rows]:
                raise ConfigError(f"method={name}: counts the votes of {', '.join(missing)}: request them too")
            rows[name], _ = use.vote({voter: rows[voter] for voter in use.voters})
    judged = pd.concat([rows[name].assign(method=name) for name in uses], ignore_index=True)
    judged["outcome"] = outcome(judged["good"], judged["bad"])
    judged = judged.rename(columns={"good": "good_score", "bad": "bad_score"})
    key, first = ["paradigm", "pair_id"], ["method", "good_score", "bad_score", "outcome"]
    given = table.reset_index(drop=True).drop(columns=key, errors="ignore")
    given = items[key].join(given.rename(columns=lambda name: f"item_{name}" if name in judged else name))
    joined = judged[key].merge(given, on=key, how="left").drop(columns=key)
    return pd.concat([judged[["method", *key]], joined, judged[first[1:]], judged.drop(columns=[*key, *first])], axis=1)


def surprisals(
    scorer: Scorer,
    texts: Iterable[str | Sequence[str]],
    policy: PolicyConfig = PLAIN,
    window: int | None = None,
    step: int | None = None,
) -> pd.DataFrame:
    """Return the surprisal of each word of texts, each of which is read alone, with entropies and ranks.

    texts: strings, whose words are what white space parts, or lists of words or regions. window, step: of texts with
    more tokens than a window (Scorer.predictions). Columns: text_id (the text's number, from 1), number, word, and
    those of eval.surprisal.words.word_surprisals. Raises InputError for a text without words, ConfigError for a
    masked model and for a window that the model does not read.
    """
    policy = build(PolicyConfig, asdict(policy), "policy.")
    rows = []
    for number, text in enumerate(texts, start=1):
        words = [sentence_of(word, f"texts: number {number}", "word") for word in _words(text)]
        if not words:
            raise InputError(f"texts: number {number}: has no words")
        rows += [(str(number), place, word) for place, word in enumerate(words, start=1)]
    table = pd.DataFrame(rows, columns=["text_id", "number", "word"])
    return text_surprisals(scorer, table.set_index(table["text_id"].to_numpy()), policy, window, step)


def _methods(names: Sequence[str]) -> list[str]:
    """Return the registered names of methods: papers use capitals, hyphens and blanks. Raises ConfigError for none."""
    if not any(names):
        raise ConfigError("methods: name at least one, such as lp")
    known = {name.replace("_", ""): name for name in methods()}
    return [known.get(re.sub(r"[\W_]", "", name).lower(), name) for name in names]


def _words(text: str | Sequence[str]) -> list[str]:
    return text.split() if isinstance(text, str) else [" ".join(str(word).split()) for word in text]


def _items(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of eval.scores.schemas.ITEMS, those that a table of pairs does not have as missing."""
    if missing := {"good", "bad"} - set(table.columns):
        raise InputError(f"pairs: no column {' and '.join(sorted(missing))}; there are {', '.join(table.columns)}")
    for side in ("good", "bad"):
        for number, sentence in enumerate(table[side]):
            sentence_of(sentence, f"pairs: row {number}", side)
    items = table.reindex(columns=ITEMS.names).reset_index(drop=True).astype(object)
    items["pair_id"] = items["pair_id"].where(items["pair_id"].notna(), items.index.astype(str)).astype(str)
    for name in ("paradigm", "phenomenon"):
        items[name] = items[name].where(items[name].notna(), "pairs")
    if (twice := items.duplicated(["paradigm", "pair_id"])).any():
        paradigm, pair = items.loc[twice, ["paradigm", "pair_id"]].iloc[0]
        raise InputError(f"pairs: pair_id {pair} is twice in {paradigm}. Give each pair a pair_id of its own, or none.")
    return items
