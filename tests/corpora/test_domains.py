"""Domains of a text: kept in its store, drawn in proportion, chosen, and exact as strata."""

import dataclasses
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.config import SampleConfig, SplitConfig
from corpora.prepare import known_sizes, prepare
from corpora.samples import Sample, draw_sample
from corpora.text import Document, TextStore, write_text_store
from corpora.word_counts import sample_counts
from corpora.words import count_characters, count_words
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from train.config import run_id
from train.runs.labels import name_curves

SHARES = {"childes": 900, "gutenberg": 260, "switchboard": 40}  # sentences


def sentence(domain: str, number: int) -> str:
    return " ".join([domain, *["very"] * (number % 7), f"tall-{number}", "tree."])


DOCUMENTS = [
    Document(domain, [sentence(domain, number) for number in range(start, min(start + 6, count))])
    for domain, count in SHARES.items()
    for start in range(0, count, 6)
]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_sample_of_several_domains_counts_the_words_of_each(tmp_path, count):
    chosen = [one for one in DOCUMENTS if one.source in list(SHARES)[:count]]
    write_text_store(tmp_path / "text", chosen, "treebank", SplitConfig(seed=0, valid=0.1, test=0.1), {})
    text = TextStore(tmp_path / "text")
    drawn = sample(text, 300)
    assert drawn.domains == (sizes_by_domain(text, drawn) if count > 1 else {})


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> TextStore:
    folder = tmp_path_factory.mktemp("domains")
    write_text_store(folder / "text", DOCUMENTS, "treebank", SplitConfig(seed=0, valid=0.1, test=0.1), {})
    return TextStore(folder / "text")


def sample(text: TextStore, size: int, seed: int = 1, domains=None, filtered=None, **values) -> Sample:
    defaults = {"count": "words", "unit": "sentence", "nested": False, "seed": None}
    return draw_sample(text, SampleConfig(size=str(size), **{**defaults, **values}), seed, filtered, domains)


def drawn_texts(text: TextStore, drawn: Sample) -> list[str]:
    return [*text.sentences(drawn.indices), *(text.sentence(index)[:end] for index, end in drawn.cuts)]


def sizes_by_domain(text: TextStore, drawn: Sample, count: str = "words") -> Counter[str]:
    """Count each domain's part of a sample again, from its text."""
    measure = {"words": lambda s: count_words(s, "treebank"), "characters": count_characters, "sentences": lambda _: 1}
    sizes: Counter[str] = Counter()
    indices = [*drawn.indices.tolist(), *(index for index, _ in drawn.cuts)]
    for index, one in zip(indices, drawn_texts(text, drawn), strict=True):
        sizes[text.sentence(index).split()[0]] += measure[count](one)
    return sizes


def train_sizes(text: TextStore, count: str = "words") -> dict[str, int]:
    return {domain["name"]: domain["train"][count] for domain in text.manifest["domains"]}


def test_a_store_holds_the_domain_of_each_document_and_their_sizes(text):
    assert text.domains == list(SHARES)
    names = [text.sentence(index).split()[0] for index in range(len(text))]
    assert [text.domains[code] for code in text.domains_of(np.arange(len(text)))] == names
    for domain in text.manifest["domains"]:
        of_splits = [domain[split] for split in ("train", "valid", "test")]
        assert sum(sizes["sentences"] for sizes in of_splits) == SHARES[domain["name"]]
        assert sum(sizes["documents"] for sizes in of_splits) == -(-SHARES[domain["name"]] // 6)
    for unit in ("documents", "sentences", "words", "characters"):
        assert sum(train_sizes(text, unit).values()) == text.manifest["splits"]["train"][unit]


def test_domains_leave_the_digest_of_a_text_as_it_was(tmp_path):
    """The digest of an earlier version, so that its runs keep their samples."""
    texts = [Document("a", ["A dog barks.", "Why?"], "train"), Document("b", ["It runs."], "valid")]
    write_text_store(tmp_path, texts, "treebank", SplitConfig(seed=0, valid=0.1, test=0.1), {})
    assert TextStore(tmp_path).digest == EARLIER_DIGEST


EARLIER_DIGEST = "f9a51719eb8fe1abdf639132b427e9111aac9fe8b6d3f105f241ca03dd3a0894"


@given(
    size=st.integers(1, 4000),
    count=st.sampled_from(["words", "characters", "sentences"]),
    unit=st.sampled_from(["sentence", "document"]),
    domains=st.sampled_from([None, ["childes", "switchboard"], ["gutenberg"]]),
    seed=st.integers(0, 2**32),
    every=st.sampled_from([None, 3]),
)
def test_strata_are_exact(text, size, count, unit, domains, seed, every):
    """Each domain's part is its share of the train split, rounded down or up, and all parts add up to the size."""
    filtered = None if every is None else np.arange(len(text)) % every == 0
    train = text.split_sentences("train")
    units = text.units(count)[train] * (1 if filtered is None else ~filtered[train])
    of = np.array([text.domains[code] for code in text.domains_of(train)])
    whole = {name: int(units[of == name].sum()) for name in domains or text.domains}
    size = 1 + size % sum(whole.values())
    drawn = sample(text, size, seed, domains, filtered, count=count, unit=unit, strata="domain")
    parts = sizes_by_domain(text, drawn, count)
    assert sum(parts.values()) == size == {"words": drawn.words, "characters": drawn.characters}.get(count, size)
    assert set(parts) <= set(whole)
    for name, available in whole.items():
        assert abs(parts[name] - Fraction(size * available, sum(whole.values()))) < 1
    indices = [*drawn.indices.tolist(), *(index for index, _ in drawn.cuts)]
    assert len(set(indices)) == len(indices)
    assert filtered is None or not filtered[indices].any()
    assert drawn.share == size / sum(whole.values())
    if count == "words":
        assert {name: words for name, words in drawn.domains.items() if words} == dict(parts)


def test_samples_of_chosen_domains_skip_the_others_in_the_same_order(text):
    whole = sample(text, text.manifest["splits"]["train"]["words"], nested=True)
    chosen = ["gutenberg", "switchboard"]
    drawn = sample(text, 900, nested=True, domains=chosen)
    own = [index for index in whole.indices if text.sentence(index).split()[0] in chosen]
    assert drawn.indices.tolist() == own[: len(drawn.indices)]
    assert drawn.words == 900
    assert drawn.domains["childes"] == 0
    assert drawn.available == sum(train_sizes(text)[name] for name in chosen)
    with pytest.raises(ConfigError, match=r"train split of .* has only \d+ words in switchboard\."):
        sample(text, 900, domains=["switchboard"])


def test_a_sample_without_strata_is_that_of_earlier_versions(text):
    plain = sample(text, 1234)
    assert sample(text, 1234, domains=list(SHARES)).digest == plain.digest
    assert plain.digest == EARLIER_SAMPLE


EARLIER_SAMPLE = "71be00be9b6313585e8436d44bf4ce89fde92218aced7f1d5c4ac20eba9b5324"


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Return the overrides of a local corpus of three domains, in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    for domain, count in SHARES.items():
        lines = (sentence(domain, number) + ("\n" if number % 6 == 5 else "") for number in range(count))
        (tmp_path / "texts" / f"{domain}.txt").write_text("\n".join(lines) + "\n")
    return ["corpus=local", "corpus.path=texts", "corpus.split.valid=0.1", "sample.size=600", "model=lstm_tiny"]


def test_unknown_domains_are_refused_with_those_available(corpus):
    config = compose("train", [*corpus, "corpus.domains=[childes,twitter,books]"])
    message = r"no domain books, twitter in local\. .*childes, gutenberg, switchboard"
    with pytest.raises(ConfigError, match=message):
        prepare(config)
    with pytest.raises(ConfigError, match=message):
        known_sizes(config)
    for value in ("[]", "{a:1}", "[[a]]"):
        with pytest.raises(ConfigError, match=r"corpus\.domains=.* list"):
            compose("train", [*corpus, f"corpus.domains={value}"])


def test_the_words_of_each_domain_are_in_the_manifest_and_counted_again(corpus):
    config = compose("train", [*corpus, "corpus.domains=[gutenberg,childes]", "sample.strata=domain"])
    entry = prepare(config).manifest["sample"]
    train = {one["name"]: one["train"]["words"] for one in prepare(config).text.manifest["domains"]}
    share = train["childes"] / (train["childes"] + train["gutenberg"])
    assert entry["domains"] == {"childes": round(600 * share), "gutenberg": 600 - round(600 * share), "switchboard": 0}
    plain, manifest = dataclasses.asdict(config), {"corpus": {"sample": entry}}
    counts = sample_counts(plain, manifest, prepare(config).text.folder.parent.parent, "treebank")
    assert counts["childes"] == sum(
        one.startswith("childes") for one in drawn_texts(prepare(config).text, prepare(config).drawn)
    )
    sizes = known_sizes(compose("train", [*corpus, "corpus.domains=[childes]"]))
    childes = prepare(config).text.manifest["domains"][0]["train"]
    assert sizes.words_per_unit["sentences"] == childes["words"] / childes["sentences"]
    with pytest.raises(ConfigError, match=r"train split of local has only [\d,]+ words in switchboard"):
        known_sizes(compose("train", [*corpus, "corpus.domains=[switchboard]"]))


def test_domains_and_strata_are_axes_of_a_study(corpus):
    """Their values name curves and are part of the run ids."""
    options = [[], ["corpus.domains=[childes]"], ["corpus.domains=[switchboard,childes]"], ["sample.strata=domain"]]
    configs = [compose("train", [*corpus, *more]) for more in options]
    ids = [run_id(config) for config in configs]
    assert len(set(ids)) == 4
    assert ids[2] == run_id(compose("train", [*corpus, "corpus.domains=[childes,switchboard]"]))
    curves = name_curves({run: as_plain(config) for run, config in zip(ids, configs, strict=True)})
    assert [curves.names[run] for run in ids] == [
        "lstm_tiny, domains=null, strata=null",
        "lstm_tiny, domains=[childes], strata=null",
        "lstm_tiny, domains=[childes,switchboard], strata=null",
        "lstm_tiny, domains=null, strata=domain",
    ]
    assert curves.notes == []


def as_plain(config):
    return dataclasses.asdict(config)
