"""Vocabularies of generated pairs: counts compared with a direct count, the same for all jobs of a study."""

import dataclasses
from collections import Counter

import pytest

from analysis import accuracies, notes
from corpora.prepare import prepare
from corpora.words import words
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated.vocabulary import read_vocabulary, resolved, smallest_samples
from eval.questionnaire.__main__ import run as write_forms
from eval.scores.files import read_items, read_scores, score_path, write_items, write_scores, write_unavailable
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.sizes import parse_size
from tests.support.simulated_study import SimulatedStudy
from train.grid import write_grid

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


@pytest.mark.parametrize(
    ("more", "change", "error", "message"),
    [
        ({"vocabulary": "study"}, {"study": None}, ConfigError, "no study; give study=NAME"),
        ({"vocabulary": "study"}, {"study": "t"}, RunError, "no study “t”"),
        ({"vocabulary": "run"}, {"model": {"name": "hf", "path": "gpt2"}}, ConfigError, "hf was trained on no sample"),
        ({"vocabulary": "study", "min_count": 10_000}, {}, ConfigError, "no word occurs so often in each sample"),
    ],
)
def test_a_vocabulary_without_words_raises_an_error(configs, tmp_path, more, change, error, message):
    with pytest.raises(error, match=message):
        with_words(dataclasses.asdict(configs["other"]) | change, tmp_path, **more)


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
