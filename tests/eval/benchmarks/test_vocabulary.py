"""Vocabularies of generated pairs: counts compared with a direct count, the same for all jobs of a study."""

import dataclasses
import random
from collections import Counter
from pathlib import Path

import pytest

from analysis import accuracies, notes
from corpora.prepare import prepare
from corpora.words import words
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated import LEAST_PAIRS, grammar_of, paradigm_of
from eval.benchmarks.generated.vocabulary import read_vocabulary, resolved, smallest_samples
from eval.benchmarks.load import load_benchmark
from eval.questionnaire.__main__ import run as write_forms
from eval.scores.files import read_items, read_scores, score_path, write_items, write_scores, write_unavailable
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError, StoreError
from pairscale.sizes import parse_size
from tests.support.simulated_study import SimulatedStudy
from train.sweeps import write_grid

NAME = "determiner_noun_agreement_1"
SENTENCES = ["the cat sleeps .", "a dog sees the cat .", "the dog sleeps near a cat .", "the gnu runs ."]


@pytest.fixture
def configs(tmp_path):
    """Four runs of a study with its grid; the last is of another model and has the sample of the first."""
    text = "\n\n".join("\n".join(SENTENCES[i // 4**k % 4] for k in range(5)) for i in range(400))
    (tmp_path / "text.txt").write_text(text + "\n")
    overrides = [
        "study=s", "corpus=local", "corpus.name=mine", f"corpus.path={tmp_path}/text.txt", "tokenizer=word",
        f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs",
    ]  # fmt: skip
    samples = {"100 1": ("100", "1"), "100 2": ("100", "2"), "1k 1": ("1k", "1")}
    runs = {
        name: compose("eval", [*overrides, "model=ngram", f"sample.size={size}", f"seed={seed}"])
        for name, (size, seed) in samples.items()
    }
    runs["other"] = compose("eval", [*overrides, "model=lstm_tiny", "sample.size=0.1k", "seed=1"])
    write_grid(tmp_path / "runs" / "s", runs, "generated", "a command")
    prepare(runs["other"])
    return runs


def benchmark(**more):
    return BenchmarkConfig(name="generated", **{"language": "en", "pairs": 5, "seed": 1, "min_count": 3, **more})


def with_words(config, tmp_path, **more):
    values = config if isinstance(config, dict) else dataclasses.asdict(config)
    return resolved(benchmark(**more), values, str(tmp_path / "runs"), str(tmp_path / "store"))


def test_the_vocabulary_of_a_study_has_the_words_of_all_its_smallest_samples(configs, tmp_path):
    smallest = smallest_samples(tmp_path / "runs", "s")
    assert [(parse_size(run["sample"]["size"]), run["seed"]) for run in smallest] == [(100, 1), (100, 2)]
    counts = []
    for name in ("100 1", "100 2"):
        corpus = prepare(configs[name])
        sentences = [corpus.text.sentence(int(index)) for index in corpus.drawn.indices]
        if corpus.drawn.cuts:
            ((last, end),) = corpus.drawn.cuts
            sentences.append(corpus.text.sentence(last)[:end])
        counts.append(Counter(word for sentence in sentences for word in words(sentence, "treebank")))
    expected = {
        word: sum(count[word] for count in counts) for word in counts[0] if all(count[word] >= 3 for count in counts)
    }
    assert 0 < len(expected) < len(counts[0])
    (path,) = {with_words(config, tmp_path, vocabulary="study").vocabulary for config in configs.values()}
    shared = read_vocabulary(tmp_path / "store" / "vocabularies" / path.rpartition("/")[2], "zh")
    assert shared.counts == expected
    assert shared.reference == "treebank"  # as the file states, whatever the language
    assert with_words(configs["1k 1"], tmp_path, vocabulary="study", min_count=1).vocabulary != path


def test_the_vocabulary_of_a_run_has_the_words_of_its_sample(configs, tmp_path):
    paths = {name: with_words(config, tmp_path, vocabulary="run").vocabulary for name, config in configs.items()}
    assert len(set(paths.values())) == 3
    assert paths["other"] == paths["100 1"]  # another model, the same sample


def test_runs_on_different_domains_have_vocabularies_of_their_own(tmp_path):
    """Their samples are of one corpus, size and seed."""
    (tmp_path / "text").mkdir()
    for name, word in ("a", "cat"), ("b", "dog"):
        paragraphs = "\n\n".join("\n".join([f"the {word} sleeps {n} ."] * 5) for n in range(200))
        (tmp_path / "text" / f"{name}.txt").write_text(paragraphs + "\n")
    overrides = [
        "study=s", "corpus=local", "corpus.name=two", f"corpus.path={tmp_path}/text", "tokenizer=word", "model=ngram",
        "sample.size=100", f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs",
    ]  # fmt: skip
    runs = {name: compose("eval", [*overrides, f"corpus.domains=[{name}]"]) for name in ("a", "b")}
    prepare(runs["a"])
    words_of = {name: read_vocabulary(Path(with_words(run, tmp_path, vocabulary="run").vocabulary), "en").counts
                for name, run in runs.items()}  # fmt: skip
    assert {name: {"cat", "dog"} & set(found) for name, found in words_of.items()} == {"a": {"cat"}, "b": {"dog"}}
    write_grid(tmp_path / "runs" / "s", runs, "generated", "a command")
    assert len(smallest_samples(tmp_path / "runs", "s")) == 2


def test_a_questionnaire_can_use_the_vocabulary_of_a_study(configs, tmp_path):
    overrides = [
        "benchmark=generated", "benchmark.vocabulary=study", "study=s", f"paths.runs={tmp_path}/runs",
        f"paths.store={tmp_path}/store", f"questionnaire.folder={tmp_path}/forms",
    ]  # fmt: skip
    with pytest.raises(InputError, match="no paradigm has 200 pairs"):  # the words of four sentences are too few
        write_forms(compose("questionnaire", overrides))


def test_other_benchmarks_and_vocabulary_files_stay_unchanged(tmp_path):
    for settings in (benchmark(), benchmark(vocabulary="my.txt"), BenchmarkConfig(name="blimp", path="x")):
        assert resolved(settings, {}, tmp_path, tmp_path) is settings


# Files of words


def counts_of(pairs):
    sentences = [pair[f"sentence_{side}"] for pair in pairs for side in ("good", "bad")]
    return Counter(word for sentence in sentences for word in words(sentence, "treebank"))


@pytest.fixture(scope="module")
def counts():
    """Counts of the words of 2,000 pairs."""
    return counts_of(paradigm_of("en", NAME, grammar_of("en")).pairs(random.Random(1), 2000))


def vocabulary(tmp_path, lines):
    file = tmp_path / "mine.tsv"
    file.write_text("".join(f"{line}\n" for line in lines))
    return str(file)


def test_min_count_excludes_the_rare_words_of_a_file_with_counts(tmp_path, counts):
    file = vocabulary(tmp_path, (f"{word}\t{count}" for word, count in counts.items()))
    loaded = load_benchmark(benchmark(paradigms=[NAME], vocabulary=file, min_count=8, pairs=200))
    words_of_pairs = {
        word for text in [*loaded.pairs["good"], *loaded.pairs["bad"]] for word in words(text, "treebank")
    }
    assert min(counts[word] for word in words_of_pairs) >= 8
    assert loaded.origin["vocabulary"]["words"] == sum(count >= 8 for count in counts.values())
    assert loaded.origin["min_count"] == 8
    with pytest.raises(ConfigError, match=r"min_count=1000000: no word of .*"):
        load_benchmark(benchmark(vocabulary=file, min_count=10**6))


def test_a_vocabulary_without_capitals_ignores_case(tmp_path, counts):
    lower = sorted({word.lower() for word in counts})
    loaded = load_benchmark(benchmark(paradigms=[NAME], min_count=None, vocabulary=vocabulary(tmp_path, lower)))
    assert len(loaded.pairs) == 5
    assert loaded.pairs["good"].str[0].str.isupper().all()  # the sentences are written as always
    uncased = read_vocabulary(tmp_path / "mine.tsv", "en")
    assert uncased.knows("These")
    assert uncased.unknown_word("These zzz .") == "zzz"
    cased = read_vocabulary(tmp_path.joinpath(vocabulary(tmp_path, [*lower, "Harold"])), "en")
    assert cased.unknown_word("These .") == "These"
    of_samples = read_vocabulary(tmp_path.joinpath(vocabulary(tmp_path, ["# reference=treebank: x", *lower])), "en")
    assert of_samples.unknown_word("These .") == "These"  # a model that never saw it reads <unk>


def test_paradigms_that_a_vocabulary_cannot_fill_are_left_out(tmp_path):
    names = ["anaphor_gender_agreement", NAME]
    template = paradigm_of("en", names[0], grammar_of("en"))
    counts = counts_of(template.pairs(random.Random(f"1:{names[0]}"), 2000))
    known = {word: n for word, n in counts.items() if word.lower() not in ("this", "that", "these", "those")}
    file = vocabulary(tmp_path, (f"{word}\t{n}" for word, n in known.items()))
    settings = {"paradigms": names, "vocabulary": file, "min_count": None}
    loaded = load_benchmark(benchmark(**settings))
    assert set(loaded.pairs["paradigm"]) == {names[0]}
    assert len(loaded.pairs) == 5
    assert list(loaded.unavailable) == [NAME]
    assert NAME in loaded.unavailable[NAME]
    assert loaded.origin["vocabulary"]["words"] == len(known)
    more = load_benchmark(benchmark(**settings | {"paradigms": names[:1], "pairs": LEAST_PAIRS + 50}))
    assert more.pairs["good"].tolist()[:5] == loaded.pairs["good"].tolist()
    vocabulary(tmp_path, ["the"])
    with pytest.raises(InputError, match=r"no paradigm has 200 pairs\. .* anaphor_gender_agreement: "):
        load_benchmark(benchmark(**settings))


def test_a_vocabulary_of_a_sample_needs_its_text(tmp_path):
    settings = benchmark(vocabulary="run")
    run_config = {"model": {"name": "lstm"}, "corpus": {"name": "toy", "reference": "treebank"}}
    with pytest.raises(StoreError) as raised:
        resolved(settings, run_config, tmp_path / "runs", tmp_path / "store")
    message = str(raised.value)
    assert f"the text of corpus=toy is not in {tmp_path / 'store'}" in message
    assert "python -m corpora corpus=toy" in message
    assert "remove" not in message


# The analysis of such runs


def test_runs_with_different_pairs_are_compared_by_paradigm(tmp_path):
    simulated = SimulatedStudy(models=("lstm_tiny",), seeds=(1, 2))
    label = "generated+en+run-k5"
    for number, folder in enumerate(simulated.write(tmp_path)):
        rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp"))
        items, _ = read_items(folder.scores("blimp"))
        if number == 0:
            missing = str(items["paradigm"].iloc[0])
            rows, items = rows[rows["paradigm"] != missing], items[items["paradigm"] != missing]
            write_unavailable(folder.scores(label), {missing: "'a' is not in the vocabulary"})
        benchmark = {"name": "generated", "digest": f"{number:02}" * 32}
        write_items(folder.scores(label), items, **benchmark)
        write_scores(score_path(folder.scores(label), "lp"), rows, metadata | {"benchmark": benchmark})
    table = accuracies(simulated.name, folder=tmp_path)
    own, whole = (
        table[table["benchmark"] == name].set_index(["run", "paradigm"])["accuracy"] for name in (label, "blimp")
    )
    assert set(own.index.get_level_values("paradigm")) == set(whole.index.get_level_values("paradigm")) - {missing}
    assert own.to_dict() == pytest.approx(whole.loc[own.index].to_dict())
    (note,) = [one for one in notes(simulated.name, benchmark=label, folder=tmp_path) if "own words" in one]
    assert f"{missing} ('a' is not in the vocabulary)" in note


def test_vocabularies_that_cannot_be_used_raise_errors(configs, tmp_path):
    of_study, values = {"vocabulary": "study"}, dataclasses.asdict(configs["other"])
    for more, change, error, message in (
        (of_study, {"study": None}, ConfigError, "no study is chosen. Add study=NAME"),
        (of_study, {"study": "t"}, RunError, "no study 't'"),
        (
            {"vocabulary": "run"},
            {"model": {"name": "hf", "path": "gpt2"}},
            ConfigError,
            "hf was not trained on a sample",
        ),
        (of_study | {"min_count": 10_000}, {}, ConfigError, "min_count=10000: .* every sample"),
    ):
        with pytest.raises(error, match=message):
            with_words(values | change, tmp_path, **more)
    for line in ("a cat", "the\tx"):
        with pytest.raises(InputError, match=r"mine\.tsv:1: .* word"):
            read_vocabulary(tmp_path.joinpath(vocabulary(tmp_path, [line])), "en")
    with pytest.raises(InputError, match="can't be read"):
        read_vocabulary(tmp_path / "nowhere", "en")
