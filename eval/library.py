"""Score models from Python, with the same defaults as the commands (for examples, see docs/guides/python.md)."""

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
    """Judge minimal pairs with one or more methods.

    Args:
        scorer: The model, as returned by `load_scorer`.
        pairs: (good, bad) sentences, or a table with the columns good and bad. The table may also have the other
            columns of eval.scores.schemas.ITEMS (paradigm, pair_id, the fields of the prefix methods) and columns of
            your own. If there is no pair_id, pairs are numbered from 0. A column `context` has the text before both
            sentences, including the space. It is read but not scored.
        methods: Names of methods, as in pairscale or as in papers ("LP", "MeanLP", "PLL"). The names can include
            methods for causal and for masked models; the ones that apply to the model are used.
        policy: Scoring settings. The defaults are the same as in conf/base.yaml.
        language: Language of the templates.
        overrides: Parameters of the methods, as on the command line ("method.pen_lp.alpha=0.6").

    Returns:
        One row per method and pair, and per template or trial if the method has them. The columns are method,
        paradigm, pair_id, the columns of `pairs`, good_score, bad_score, outcome, and the other columns of
        eval.scores.schemas.SCORES except the word counts. Scores are in nats for methods that sum log-probabilities.
        The outcome is 1 if good_score > bad_score, and 0 otherwise.

    Raises:
        ConfigError: If a method doesn't exist or doesn't fit the pairs, or if no method fits the model.
        InputError: If a pair has no good or no bad sentence, or if a pair_id occurs twice in a paradigm.
    """
    policy = build(PolicyConfig, asdict(policy), "policy.")  # checks the values
    chosen = [methods] if isinstance(methods, str) else methods
    config = compose("eval", [f"method=[{','.join(_methods(chosen))}]", *overrides])
    table = pairs if isinstance(pairs, pd.DataFrame) else pd.DataFrame(list(pairs), columns=["good", "bad"])
    if table.empty:
        raise InputError("pairs is empty. Pass at least one pair of a good and a bad sentence.")
    items = _items(table)
    fitted = fitting(config.method, scorer.masked)
    uses = {name: MethodUse.of(name, values, scorer, language) for name, values in fitted.items()}
    read = [use for use in uses.values() if not use.voters]
    rows = judge_pairs(scorer, items, read, policy).rows if read else {}
    for name, use in uses.items():
        if use.voters:
            if missing := [voter for voter in use.voters if voter not in rows]:
                needed = ", ".join(missing)
                raise ConfigError(f"method={name} counts the votes of {needed}. Add {needed} to methods.")
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
    """Compute the surprisal, entropy and rank of every word in texts. Each text is read on its own.

    Args:
        scorer: A causal model, as returned by `load_scorer`.
        texts: Strings, which are split into words at white space, or lists of words or regions.
        policy: Scoring settings. The defaults are the same as in conf/base.yaml.
        window: The number of tokens to read at a time. The default is 1,024, or the model's limit if that is lower.
        step: The number of tokens that each further window of a long text adds. The default is half a window.

    Returns:
        One row per word, with the columns text_id (from 1), number (position of the word in its text, from 1), word,
        and the columns of eval.surprisal.words.word_surprisals.

    Raises:
        InputError: If a text has no words.
        ConfigError: If the model is masked, or can't read windows of this size.
    """
    policy = build(PolicyConfig, asdict(policy), "policy.")
    rows = []
    for number, text in enumerate(texts, start=1):
        words = [sentence_of(word, f"texts: text {number}", "word") for word in _words(text)]
        if not words:
            raise InputError(f"texts: text {number} has no words. Remove it, or add at least one word.")
        rows += [(str(number), place, word) for place, word in enumerate(words, start=1)]
    table = pd.DataFrame(rows, columns=["text_id", "number", "word"])
    return text_surprisals(scorer, table.set_index(table["text_id"].to_numpy()), policy, window, step)


def _methods(names: Sequence[str]) -> list[str]:
    """Return the registered names of methods. Capitals, hyphens and spaces in `names` are ignored.

    Raises ConfigError if there are no names.
    """
    if not any(names):
        raise ConfigError("methods is empty. Name at least one method, such as lp.")
    known = {name.replace("_", ""): name for name in methods()}
    return [known.get(re.sub(r"[\W_]", "", name).lower(), name) for name in names]


def _words(text: str | Sequence[str]) -> list[str]:
    return text.split() if isinstance(text, str) else [" ".join(str(word).split()) for word in text]


def _items(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of pairs with all columns of eval.scores.schemas.ITEMS, after adding missing ones as empty."""
    if not {"good", "bad"} <= set(table.columns):
        raise InputError(
            f"pairs: the table has the columns {', '.join(map(str, table.columns))}, but needs good and bad. Rename "
            "its columns."
        )
    for side in ("good", "bad"):
        for number, sentence in enumerate(table[side]):
            sentence_of(sentence, f"pairs: row {number}", side)
    items = table.reindex(columns=ITEMS.names).reset_index(drop=True).astype(object)
    if "context" in table:
        contexts = [sentence_of(context, f"pairs: row {n}", "context") for n, context in enumerate(table["context"])]
        items["contexts"] = [[context] * 2 for context in contexts]
        items["options"] = items[["good", "bad"]].to_numpy().tolist()
        items["gold"] = 0
    items["pair_id"] = items["pair_id"].where(items["pair_id"].notna(), items.index.astype(str)).astype(str)
    for name in ("paradigm", "phenomenon"):
        items[name] = items[name].where(items[name].notna(), "pairs")
    if (twice := items.duplicated(["paradigm", "pair_id"])).any():
        paradigm, pair = items.loc[twice, ["paradigm", "pair_id"]].iloc[0]
        raise InputError(
            f"pairs: pair_id {pair} occurs twice in {paradigm}. Give every pair a different pair_id, or leave it out."
        )
    return items
