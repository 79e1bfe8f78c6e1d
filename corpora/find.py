"""Run `python -m corpora.find`, which shows what a filter matches in an annotated corpus, how often and how reliably.

To estimate precision and recall, a person judges a sheet of sentences. This is a CSV file with the columns COLUMNS. It
contains up to equally many matching and other sentences of the train split, in random order. The person fills in 1 (has
the construction) or 0, without seeing which sentences the filter matched.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from corpora.annotate.layer import open_layer
from corpora.annotate.tree import Tree
from corpora.config import FilterConfig, FindCommand, RegexFilter
from corpora.constructions.matcher import Matcher, Occurrence
from corpora.constructions.matches import Matches, find_matches
from corpora.prepare import corpus_folder, prepare_text
from corpora.text import SPLITS, TextStore
from pairscale.command.compose import group_files
from pairscale.command.main import main
from pairscale.console import print_text
from pairscale.errors import ConfigError, InputError
from pairscale.seeds import permutation
from pairscale.shares import wilson
from pairscale.tables import filled_table, plain_table, print_table, write_csv

MILLION = 10**6
STYLE = "bold green"  # style of matching words
COLUMNS = ("line", "sentence", "judgement")  # "line" is the sentence's line number in text.txt, from 1
DRAWS = 20_000  # number of random draws for the interval of recall
MAX_BYTES = 2**28


def run(config: FindCommand) -> None:
    """Print what a filter matches in a corpus, and write or read its sheet.

    Raises ConfigError if there is no filter or no annotation, and the same errors as `prepare_text`, `find_matches` and
    `read_sheet`.
    """
    if config.filter is None:
        available = ", ".join(group_files("filter"))
        raise ConfigError(f"No construction chosen. Add filter=NAME, where NAME is one of {available}.")
    if isinstance(config.filter, RegexFilter):
        raise ConfigError(
            f"filter.regex={config.filter.regex}: python -m corpora.find searches trees, not text. To list the "
            "sentences that a regular expression matches, run python -m corpora with ablate.action=remove and "
            "ablate.listing=FILE."
        )
    text, find = prepare_text(config), config.find
    layer = open_layer(corpus_folder(config), config.ablate.layer, text)
    matches = find_matches(text, config.filter, layer)
    console = Console(highlight=False)
    train = np.intersect1d(matches.sentences, text.split_sentences("train"))
    chosen = np.sort(train[permutation(len(train), find.seed)[: find.show]])
    matcher = Matcher(config.filter)
    for sentence, tree in zip(chosen.tolist(), layer.trees(chosen), strict=True):
        occurrences = matcher.occurrences(tree)
        console.print(f"{sentence + 1:,}:", marked(tree, occurrences), soft_wrap=not console.is_terminal)
        if find.tree:
            print_table(console, _tree_table(tree, occurrences), ("MORPH", "LEMMA"))
    if len(chosen):
        console.print()
    print_table(console, _counts(config.filter, text, matches), ("share", "sentences"))
    if find.sheet is None:
        return
    path = Path(find.sheet)
    if path.exists():
        shares = zip(("precision", "recall"), read_sheet(path, text, matches, find.seed), strict=True)
        for name, (value, low, high, judged) in shares:
            print_text(console, f"{name:9} {value:.1%} (95% interval {low:.1%} to {high:.1%}, {judged:,} sentences)")
    else:
        rows = write_sheet(path, text, matches, find.sentences, find.seed)
        line = (
            f"{rows:,} sentences to judge are in {path}. Fill in 1 (has the construction) or 0, then run the same "
            "command again for precision and recall."
        )
        print_text(console, line)


def marked(tree: Tree, occurrences: Sequence[Occurrence]) -> Text:
    """Return a sentence with its matching words in brackets. In a terminal, they are also coloured."""
    words = sorted({(tree.starts[word], tree.ends[word]) for one in occurrences for word in one.words.values()})
    text, end = Text(), 0
    for start, stop in words:
        if start < end:  # the words of a contraction share their characters
            continue
        text.append(tree.sentence[end:start])
        text.append(f"[{tree.sentence[start:stop]}]", STYLE)
        end = stop
    return text.append(tree.sentence[end:])


def _tree_table(tree: Tree, occurrences: Sequence[Occurrence]) -> Table:
    """Return a tree as a table with one row per word. The columns are named after the attributes in patterns."""
    table = plain_table("")
    for heading in ("", "ORTH", "head", "DEP", "POS", "TAG", "LEMMA", "MORPH", "matched as"):
        table.add_column(heading, justify="right" if heading in ("", "head") else "left", no_wrap=True)
    rows = zip(tree.words, tree.heads, tree.relations, tree.upos, tree.xpos, tree.lemmas, tree.feats, strict=True)
    for word, (form, head, *values) in enumerate(rows):
        matched = [f"{name} ({one.pattern})" for one in occurrences for name, at in one.words.items() if at == word]
        above = "-" if head == word else f"{tree.words[head]} {head + 1}"
        cells = [str(word + 1), form, above, *values, ", ".join(dict.fromkeys(matched))]
        table.add_row(*(Text(cell, STYLE if matched else "") for cell in cells))
    return table


def _counts(config: FilterConfig, text: TextStore, matches: Matches) -> Table:
    """Return a table of the number of matches in each split, in each domain and overall."""
    rows, every = [], np.arange(len(text))
    parts: dict[str, npt.NDArray[np.int64]] = {split: text.split_sentences(split) for split in SPLITS}
    if len(text.domains) > 1:
        of = text.domains_of(every)
        parts |= {f"domain {name}": np.flatnonzero(of == number) for number, name in enumerate(text.domains)}
    in_sentence = np.bincount(matches.places[:, 0], minlength=len(text))
    for name, sentences in (parts | {"all": every}).items():
        words, number = int(text.words[sentences].sum()), int(in_sentence[sentences].sum())
        matching = int((in_sentence[sentences] > 0).sum())
        rates = ("", "", "")  # for a split without text
        if words:
            rates = (f"{MILLION * number / words:,.1f}", f"{matching:,}", f"{matching / len(sentences):.2%}")
        rows.append((name, f"{number:,}", *rates))
    table = filled_table(("", "matches", "per million words", "sentences", "share"), rows, [""])
    table.title = Text(f"{config.name}: {config.description}")
    return table


# The sheet


Share = tuple[float, float, float, int]  # a share, its 95% interval, and the number of judged sentences


def write_sheet(path: Path, text: TextStore, matches: Matches, sentences: int, seed: int) -> int:
    """Write a sheet with up to `sentences` matching and up to as many other sentences. Return the number of rows."""
    strata = _strata(text, matches)
    drawn = [stratum[permutation(len(stratum), seed, number)[:sentences]] for number, stratum in enumerate(strata)]
    chosen = np.concatenate(drawn)
    chosen = chosen[permutation(len(chosen), seed, len(drawn))]
    rows = {"line": chosen + 1, "sentence": list(text.sentences(chosen)), "judgement": [""] * len(chosen)}
    write_csv(path, pd.DataFrame(rows))
    return len(chosen)


def read_sheet(path: Path, text: TextStore, matches: Matches, seed: int) -> tuple[Share, Share]:
    """Return precision and recall from a filled-in sheet. `seed` determines the random draws for recall's interval.

    If a share p of the M matching sentences and a share q of the N others have the construction, recall is
    Mp / (Mp + Nq). Its interval comes from draws of p and q from their posteriors (Jeffreys' priors). Rows without a
    judgement are skipped, which is safe because the rows are in random order. Raises InputError, with file and line, if
    the file is not a sheet for this text.
    """
    judgements = _judgements(path, text)
    strata = _strata(text, matches)
    counts = []  # for each stratum: sentences with the construction, and judged sentences
    for stratum in strata:
        judged = [judgements[line] for line in (stratum + 1).tolist() if line in judgements]
        counts.append((sum(judged), len(judged)))
    (right, trials), (_, other_trials) = counts
    if not trials:
        raise InputError(
            f"{path}: no judgements of sentences that the filter matches were found. Fill in the column 'judgement' of "
            "a sheet that was written with this filter."
        )

    def recall(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        found, missed = (share * len(stratum) for share, stratum in zip((p, q), strata, strict=True))
        with np.errstate(invalid="ignore"):  # NaN if no sentence has the construction
            return np.asarray(found / (found + missed))

    generator = np.random.default_rng(seed)
    drawn = [generator.beta(k + 0.5, n - k + 0.5, DRAWS) if n else np.full(DRAWS, np.nan) for k, n in counts]
    low, high = np.quantile(recall(*drawn), (0.025, 0.975)).tolist()
    (value,) = recall(*(np.array([k / n if n else np.nan]) for k, n in counts)).tolist()
    return (right / trials, *wilson(right / trials, trials), trials), (value, low, high, trials + other_trials)


def _strata(text: TextStore, matches: Matches) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the training sentences that match, and the training sentences that don't."""
    train = text.split_sentences("train")
    match = np.isin(train, matches.sentences, assume_unique=True)
    return train[match], train[~match]


def _judgements(path: Path, text: TextStore) -> dict[int, bool]:
    """Return the judgements of a sheet by line number of the text. Raises InputError if the sheet is invalid."""
    if path.stat().st_size > MAX_BYTES:
        raise InputError(
            f"{path}: this file has more than {MAX_BYTES:,} bytes, which is too long for a sheet. Use a sheet that "
            "find.sheet wrote."
        )
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except ValueError as error:  # from pandas' parser, or because of the encoding
        raise InputError(
            f"{path}: this file can't be read as CSV in UTF-8 ({error}). Save the sheet as CSV in UTF-8."
        ) from None
    if missing := [name for name in COLUMNS if name not in table]:
        raise InputError(
            f"{path}:1: this sheet has no column {', '.join(missing)}. Add it. A sheet needs the columns "
            f"{', '.join(COLUMNS)}."
        )
    lines = text.folder / "text.txt"
    judged: dict[int, str] = {}
    rows = zip(*(table[name].str.strip() for name in COLUMNS), strict=True)
    for number, (line, sentence, judgement) in enumerate(rows, start=2):
        where = f"{path}:{number}"
        if not (line.isascii() and line.isdecimal() and 0 < int(line) <= len(text)):
            raise InputError(
                f"{where}: line={line:.40}: this is not a line number of {lines}. Use a number from 1 to {len(text)}."
            )
        if sentence.removeprefix("'") != text.sentence(int(line) - 1).strip().removeprefix("'"):  # see write_csv
            raise InputError(
                f"{where}: this is not the sentence in line {line} of {lines}. Use a sheet that was written for this "
                "text."
            )
        if judgement not in ("", "0", "1"):
            raise InputError(
                f"{where}: judgement={judgement:.40}: this is not a judgement. Use 1 (has the construction) or 0."
            )
        if int(line) in judged:
            raise InputError(f"{where}: line={line}: this line occurs twice. Remove one of the two rows.")
        judged[int(line)] = judgement
    return {line: judgement == "1" for line, judgement in judged.items() if judgement}


if __name__ == "__main__":
    main("find", run)
