"""Read benchmarks as tables of minimal pairs. YAML files in conf/benchmark/ describe their columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from corpora.config import PathsConfig
from corpora.words import count_words
from eval.benchmarks.cells import blanks_note, flag_of, label_of, name_of, part_of, sentence_of
from eval.benchmarks.choices import compared, identical, read_choices
from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig, forms
from eval.benchmarks.files import Generated, Row, Table, read_column, table_of
from eval.benchmarks.generated.vocabulary import resolved
from eval.benchmarks.known_items import faulty_note, faulty_pairs, unpublished_note
from eval.scores.schemas import ITEMS, SIDES
from pairscale.command.schemas import listed
from pairscale.errors import InputError, first_few
from pairscale.files import sha256_json
from pairscale.progress import with_progress

# The usual names of columns in BLiMP and similar benchmarks. They are tried if the configuration doesn't name a column.
USUAL = {
    "good": ("good", "sentence_good", "good_sentence"),
    "bad": ("bad", "sentence_bad", "bad_sentence"),
    "paradigm": ("paradigm", "UID"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "field": ("field",),
    "pair_id": ("pair_id", "pairID", "pair_ID"),
}
_PARTS = {
    "one_prefix_method": ["one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad"],
    "two_prefix_method": ["two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word"],
}
_READERS = {
    **dict.fromkeys(("good", "bad", "sentence"), sentence_of),
    "label": label_of,
    **dict.fromkeys(("phenomenon", "pair_id"), name_of),
    **dict.fromkeys(("lexically_identical", *_PARTS), flag_of),
    **dict.fromkeys(("field", *chain(*_PARTS.values())), part_of),
}
# The user's own columns with these names are renamed.
_OF_CHOICES = ["options", "contexts", "gold", "ties", "unk_wrong"]
# Columns that aren't the user's own. BLiMP's simple_LM_method is one of them, because it is true for all pairs.
_NEVER_OWN = {*ITEMS.names, "", "simple_LM_method"}.difference(_OF_CHOICES)
_DTYPES = {item.name: "boolean" if pa.types.is_boolean(item.type) else "str" for item in ITEMS}
_DTYPES |= {"options": "object", "contexts": "object", "gold": "Int32"}
_KEY = ["paradigm", "pair_id"]


@dataclass(frozen=True)
class Benchmark:
    """The minimal pairs or choices of a benchmark.

    Attributes:
        name: Name of the benchmark.
        pairs: One row per pair, sorted by paradigm and then in the source's order, with the columns of
            eval.scores.schemas.ITEMS and the user's own columns. (paradigm, pair_id) is unique.
        digest: SHA-256 digest of paradigm, pair_id, phenomenon, both sentences, options and contexts of all pairs.
        origin: The origin of generated pairs (`origin_of` in eval/benchmarks/generated), and show_texts if it is false.
        unavailable: For each paradigm without pairs, the reason.
        notes: Sentences about anything unusual.
    """

    name: str
    pairs: pd.DataFrame
    digest: str
    origin: Mapping[str, Any] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _words: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    @property
    def described(self) -> dict[str, Any]:
        """The metadata about the benchmark in score files."""
        return {"name": self.name, "digest": self.digest, **self.origin}

    def words(self, reference: str) -> dict[str, int]:
        """Return the number of words in each sentence, counted by a reference tokenizer. Counts are cached."""
        if reference not in self._words:
            table = compared(self.pairs)
            texts = dict.fromkeys([*table["good"], *table["bad"]])
            counted = with_progress(((1, text) for text in texts), "counting words", len(texts), "sentences")
            self._words[reference] = {text: count_words(text, reference) for text in counted}
        return self._words[reference]


def benchmark_of(config: BenchmarkConfig, paths: PathsConfig, run: Mapping[str, Any]) -> Benchmark:
    """Return the pairs of a benchmark for a run. Each benchmark is read only once per process.

    `run` is the run's configuration, because its sample can be the vocabulary of generated pairs. Raises the same
    errors as `load_benchmark` and `resolved`.
    """
    return loaded_benchmark(msgspec.json.encode(resolved(config, run, paths.runs, paths.store)))


@lru_cache(maxsize=32)
def loaded_benchmark(config: bytes) -> Benchmark:
    """Read a benchmark, given its configuration as JSON. It is read only once in a process that scores many runs."""
    return load_benchmark(msgspec.json.decode(config, type=BenchmarkConfig))


def load_benchmark(config: BenchmarkConfig) -> Benchmark:
    """Read the pairs of a benchmark.

    Raises InputError, with file and line, if data are missing or damaged. Raises ConfigError if the configuration
    doesn't fit the data.
    """
    source = forms()[str(config.form)].read(config)
    if isinstance(source, Generated):
        rows = (Row(name, pair) for name, pairs in source.pairs.items() for pair in pairs)
        pairs = _read_pairs([Table(config.name, config.name, rows)], config)
        return Benchmark(config.name, pairs, _digest(pairs), source.origin, source.unavailable)
    whole = _read_pairs(source, config)
    pairs = whole[whole["paradigm"].isin(config.chosen_paradigms(sorted(set(whole["paradigm"]))))]
    if config.pairs is not None:
        pairs = pairs.groupby("paradigm", sort=False).head(config.pairs)
    pairs = pairs.reset_index(drop=True)
    is_plain = pairs["options"].isna().all() and not config.separator
    notes = (
        unpublished_note(config.name, whole),
        faulty_note(config.name, pairs),
        _same_note(config.name, pairs),
        blanks_note([*pairs["good"], *pairs["bad"]]) if is_plain else None,
    )
    origin = {} if config.show_texts else {"show_texts": False}
    return Benchmark(config.name, pairs, _digest(pairs), origin, notes=tuple(filter(None, notes)))


def _digest(pairs: pd.DataFrame) -> str:
    more = [] if pairs["options"].isna().all() else ["options", "contexts"]
    return sha256_json(pairs[["paradigm", "pair_id", "phenomenon", "good", "bad", *more]].to_numpy().tolist())


def _same_note(name: str, pairs: pd.DataFrame) -> str | None:
    """Return a note about pairs of two equal sentences, or None if there are none or all are known faulty pairs."""
    same = pairs[identical(pairs)]
    if len(same) == (faulty_pairs(name, pairs)["reason"] == "same_sentence").sum():
        return None
    few = first_few([f"{row.paradigm} {row.pair_id}" for row in same.itertuples()], 5)
    return f"{len(same)} of {len(pairs):,} pairs have two equal sentences, so every model ties: {few}."


def drawn_pairs(pairs: pd.DataFrame, count: str, seed: int) -> npt.NDArray[np.int64]:
    """Draw `count` pairs (or "all") from each paradigm, which are the same for every model. Return sorted positions."""
    if count == "all":
        return np.arange(len(pairs))
    rng = np.random.default_rng(seed)
    groups = pairs.groupby("paradigm", sort=True).indices.values()
    return np.sort(np.concatenate([rng.permutation(np.sort(group))[: int(count)] for group in groups]))


def _read_pairs(found: Iterable[Table], config: BenchmarkConfig) -> pd.DataFrame:
    """Return the pairs of tables, sorted by paradigm, with the columns of ITEMS and the user's own columns.

    If there is no column of ids, pairs are numbered from 0 in each paradigm. Raises InputError for missing columns,
    invalid cells, labelled sentences that don't form pairs, and duplicate ids.
    """
    tables = [_read_table(table, config) for table in found]
    if not tables:
        raise InputError(f"benchmark={config.name}: this benchmark has no tables. Check benchmark.path.")
    pairs = pd.concat(tables)
    numbers = pairs.groupby("paradigm").cumcount().astype(str)
    pairs["pair_id"] = pairs["pair_id"].where(pairs["pair_id"].notna(), numbers) if "pair_id" in pairs else numbers
    own = [name for name in pairs if name not in ITEMS.names]
    pairs = pairs.reindex(columns=[*ITEMS.names, *own]).astype(_DTYPES | dict.fromkeys(own, "str"))
    if (twice := pairs.duplicated(_KEY).to_numpy()).any():
        paradigm, pair_id = pairs[_KEY].iloc[int(twice.argmax())]
        raise InputError(
            f"{pairs.index[int(twice.argmax())]}: paradigm {paradigm} has two pairs with the id {pair_id}. Give every "
            "pair in a paradigm a different id."
        )
    phenomena = pairs.groupby("paradigm")["phenomenon"].unique()
    for name, several in phenomena[phenomena.str.len() > 1].items():
        raise InputError(f"The paradigm {name} belongs to the phenomena {' and '.join(several)}. Choose one of them.")
    return pairs.sort_values("paradigm", kind="stable", ignore_index=True)


def _read_table(table: Table, config: BenchmarkConfig) -> pd.DataFrame:
    """Return the pairs of one table, with one row per pair, indexed by the rows' places."""
    cells = table_of(table.rows)
    if "file" in {name for value in vars(config.columns).values() for name in listed(value)} - {*cells}:
        cells["file"] = table.name
    columns = _columns([*cells], config.columns, table.source)
    read = pd.DataFrame(index=cells.index)
    is_choice = bool({"options", "context"} & set(columns))
    apart = ("paradigm", "options", "context", *(("good", "bad", "label") if is_choice else ()))
    for name in [name for name in columns if name not in apart]:
        read[name] = pd.Series(read_column(cells, columns[name][0], _READERS[name]), read.index, dtype=object)
    if is_choice:
        read = read.join(read_choices(cells, columns, config))
    elif config.separator:
        texts = [name for name in ("good", "bad", "sentence") if name in read]
        read[texts] = config.separator + read[texts]
    if (text := config.exclude) is not None:
        kept = [not any(text in option for option in options) for options in read["options"]]
        read, cells = read[kept], cells[kept]
    names = [read_column(cells, column, name_of) for column in columns.get("paradigm", ())]
    read["paradigm"] = ["/".join(parts) for parts in zip(*names, strict=True)] if names else table.name
    if "phenomenon" not in read:
        read["phenomenon"] = read["paradigm"]
    for name in {"phenomenon", "field"} & {*read}:
        read[name] = read[name].map(lambda text: (config.rename or {}).get(text, text))
    for flag, parts in _PARTS.items():
        if flag not in read and set(parts) <= set(read):
            read[flag] = read[parts].notna().all(axis=1)
    taken = _NEVER_OWN.union(*columns.values())
    read = read.assign(ties=config.ties, unk_wrong=config.unk_wrong or None)
    own = cells[[name for name in cells if name not in taken]].map(_own_text)
    own = own.rename(columns={name: f"item_{name}" for name in _OF_CHOICES})
    if "sentence" in read:
        read, own = _joined(read, own, config.labels or ("1", "0"))
    return pd.concat([read, own], axis=1)


def _columns(there: Sequence[str], columns: ColumnsConfig, source: str) -> dict[str, list[str]]:
    """Return the names of the columns for each key of USUAL and _READERS that the table has.

    Raises InputError if a named column is missing, if two columns have usual names for the same key, or if there are no
    columns with sentences.
    """
    found = {name: [name] for name in _READERS if name in there and name not in vars(columns)}
    for name, value in vars(columns).items():
        usual = [] if (columns.sentence or columns.options) and name in SIDES else USUAL.get(name, ())
        named = [column for column in usual if column in there] if value is None else value or []
        found[name] = [named] if isinstance(named, str) else named
        missing = [column for column in found[name] if column not in there]
        problem = [f"there is no column '{column}', which benchmark.columns.{name} names" for column in missing]
        if value is None and len(named) > 1:
            problem.append(f"both {' and '.join(named)} could be the {name}. Choose one with benchmark.columns.{name}")
        if value is None and not named and usual and name in SIDES:
            problem.append(
                f"there is no column {' or '.join(usual)} for the {name} sentence. Set benchmark.columns.{name}, or "
                "set benchmark.columns.sentence and .label if each row has one sentence"
            )
        if problem:
            hint = "If these look wrong, check benchmark.delimiter and benchmark.header."
            raise InputError(f"{source}: {problem[0]}. The columns are {', '.join(there)}. {hint}")
    return {name: names for name, names in found.items() if names}


def _own_text(cell: Any) -> str | None:
    """Convert a cell of the user's own columns to text that can be written to a file. Return None if it is empty."""
    return None if cell is None else str(cell).encode("utf-8", "replace").decode() or None


def _joined(rows: pd.DataFrame, own: pd.DataFrame, labels: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Join good and bad rows to pairs, by paradigm and pair_id, or in turn if there are no ids.

    Return the pairs, and the user's own columns with the cells that are the same in both rows.
    """
    sides = rows["label"].map(dict(zip(map(str.casefold, labels), SIDES, strict=True))).to_numpy()
    wrong, turns = pd.isna(sides), ""
    number = rows.groupby("paradigm").cumcount()
    if by_turns := "pair_id" not in rows:
        wrong = sides != np.where(number % 2, "bad", "good")
        turns = " in turn, or set benchmark.columns.pair_id"
    for at in np.flatnonzero(wrong).tolist():
        raise InputError(
            f"{rows.index[at]}: the label {rows['label'].iat[at]} isn't valid here. Use {' and '.join(labels)}{turns}."
        )
    ids = number // 2 if by_turns else rows["pair_id"]
    pair = rows.groupby(["paradigm", ids], sort=False).ngroup().to_numpy()
    counts = pd.DataFrame({side: sides == side for side in SIDES}).groupby(pair).sum()
    for faulty, (good, bad) in counts[(counts != 1).any(axis=1)].iterrows():
        at = int(np.flatnonzero(pair == faulty)[-1])
        raise InputError(f"{rows.index[at]}: the pair has {good} good and {bad} bad sentences. Write one of each.")
    order = np.argsort(pair, kind="stable")
    good, bad = (order[sides[order] == side] for side in SIDES)
    sentences = rows.pop("sentence").to_numpy()
    shared = own.iloc[good].where(own.iloc[good].to_numpy() == own.iloc[bad].to_numpy(), None)
    pairs = rows.drop(columns="label").iloc[good].assign(good=sentences[good], bad=sentences[bad])
    return pairs, shared.dropna(axis=1, how="all")
