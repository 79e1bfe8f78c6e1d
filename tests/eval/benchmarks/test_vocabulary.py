"""The words that generated pairs may hold: counted again by hand, the same for all jobs of a study, kept by label."""

import dataclasses
from collections import Counter

import pandas as pd
import pytest

from analysis.sections.unknown_words import unavailable_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from corpora.prepare import prepare
from corpora.words import words
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated.vocabulary import read_vocabulary, resolved, smallest_samples
from eval.grid import write_grid
from eval.questionnaire.run import write_forms
from eval.scores.files import read_items, read_scores, score_path, write_items, write_scores, write_unavailable
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.sizes import parse_size
from tests.support.simulated_study import SimulatedStudy

SENTENCES = ["the cat sleeps .", "a dog sees the cat .", "the dog sleeps near a cat .", "the gnu runs ."]


@pytest.fixture
def configs(tmp_path):
    """Runs of a study over a text, whose grid is kept: three, and one of another model with a sample of the first."""
    text = "\n\n".join("\n".join(SENTENCES[i // 4**k % 4] for k in range(5)) for i in range(400))
    (tmp_path / "text.txt").write_text(text + "\n")
    given = [
        "study=s", "corpus=local", "corpus.name=mine", f"corpus.path={tmp_path}/text.txt", "tokenizer=word",
        f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs",
    ]  # fmt: skip
    asked = {"100 1": ("100", "1"), "100 2": ("100", "2"), "1k 1": ("1k", "1")}
    found = {
        name: compose("eval", [*given, "model=ngram", f"sample.size={size}", f"seed={seed}"])
        for name, (size, seed) in asked.items()
    }
    found["other"] = compose("eval", [*given, "model=lstm_tiny", "sample.size=0.1k", "seed=1"])
    write_grid(tmp_path / "runs" / "s", found, "generated", "a command")
    prepare(found["other"])
    return found


def benchmark(**more):
    return BenchmarkConfig(name="generated", **{"language": "en", "pairs": 5, "seed": 1, "min_count": 3, **more})


def with_words(config, tmp_path, **more):
    described = config if isinstance(config, dict) else dataclasses.asdict(config)
    return resolved(benchmark(**more), described, str(tmp_path / "runs"), str(tmp_path / "store"))


def test_words_are_those_that_all_smallest_samples_hold(configs, tmp_path):
    smallest = smallest_samples(tmp_path / "runs", "s")
    assert [(parse_size(found["sample"]["size"]), found["seed"]) for found in smallest] == [(100, 1), (100, 2)]
    counted = []
    for name in ("100 1", "100 2"):
        corpus = prepare(configs[name])
        sentences = [corpus.text.sentence(int(index)) for index in corpus.drawn.indices]
        if corpus.drawn.cut:
            last, end = corpus.drawn.cut
            sentences.append(corpus.text.sentence(last)[:end])
        counted.append(Counter(word for sentence in sentences for word in words(sentence, "treebank")))
    expected = {word: sum(of[word] for of in counted) for word in counted[0] if all(of[word] >= 3 for of in counted)}
    assert 0 < len(expected) < len(counted[0])
    (found,) = {with_words(config, tmp_path, vocabulary="study").vocabulary for config in configs.values()}
    read = read_vocabulary(tmp_path / "store" / "vocabularies" / found.rpartition("/")[2], "zh")
    assert read.counts == expected
    assert read.reference == "treebank"  # the file says it, whatever the language
    assert with_words(configs["1k 1"], tmp_path, vocabulary="study", min_count=1).vocabulary != found


def test_a_runs_own_words(configs, tmp_path):
    found = {name: with_words(config, tmp_path, vocabulary="run").vocabulary for name, config in configs.items()}
    assert len(set(found.values())) == 3
    assert found["other"] == found["100 1"]  # of another model, and the same sample


@pytest.mark.parametrize(
    ("more", "change", "error", "message"),
    [
        ({"vocabulary": "study"}, {"study": None}, ConfigError, "no study; give study=NAME"),
        ({"vocabulary": "study"}, {"study": "t"}, RunError, "study=t: no folder"),
        ({"vocabulary": "run"}, {"model": {"name": "hf", "path": "gpt2"}}, ConfigError, "hf was trained on no sample"),
        ({"vocabulary": "study", "min_count": 10_000}, {}, ConfigError, "no word occurs so often in each sample"),
    ],
)
def test_what_has_no_words(configs, tmp_path, more, change, error, message):
    with pytest.raises(error, match=message):
        with_words(dataclasses.asdict(configs["other"]) | change, tmp_path, **more)


def test_a_questionnaire_is_made_of_a_studys_words_too(configs, tmp_path):
    asked = [
        "benchmark=generated", "benchmark.vocabulary=study", "study=s", f"paths.runs={tmp_path}/runs",
        f"paths.store={tmp_path}/store", f"questionnaire.folder={tmp_path}/forms",
    ]  # fmt: skip
    with pytest.raises(InputError, match="no paradigm has 200 pairs"):  # the words of four sentences are too few
        write_forms(compose("questionnaire", asked))


def test_other_benchmarks_and_files_are_left_as_they_are(tmp_path):
    for asked in (benchmark(), benchmark(vocabulary="my.txt"), BenchmarkConfig(name="blimp", path="x")):
        assert resolved(asked, {}, tmp_path, tmp_path) is asked


# What the analysis makes of them


def test_runs_with_pairs_of_their_own_are_judged_by_paradigm(tmp_path):
    simulated = SimulatedStudy(models=("lstm_tiny",), seeds=(1, 2))
    label = "generated+en+run-k5"
    for number, folder in enumerate(simulated.write(tmp_path)):
        rows, metadata = read_scores(score_path(folder.scores("blimp"), "lp"))
        items, _ = read_items(folder.scores("blimp"))
        if number == 0:
            lacking = str(items["paradigm"].iloc[0])
            rows, items = rows[rows["paradigm"] != lacking], items[items["paradigm"] != lacking]
            write_unavailable(folder.scores(label), {lacking: "'a' is not in the vocabulary"})
        told = {"name": "generated", "digest": f"{number:02}" * 32}
        write_items(folder.scores(label), items, **told)
        write_scores(score_path(folder.scores(label), "lp"), rows, metadata | {"benchmark": told})
    study = collect(tmp_path, simulated.name)
    judged, whole = (judgements(study, name, "lp", "wrong") for name in (label, "blimp"))
    assert judged.of_paradigms
    assert set(judged.pairs["paradigm"]) == set(whole.pairs["paradigm"]) - {lacking}
    assert lacking in judged.notes[-1]
    means = pd.DataFrame(whole.outcome.T).groupby(whole.pairs["paradigm"].to_numpy()).mean()
    for column, paradigm in enumerate(judged.pairs["paradigm"]):
        assert judged.outcome[:, column] == pytest.approx(means.loc[paradigm].to_numpy())
    (exhibit,) = unavailable_exhibits(study, judged)
    assert exhibit.table.to_numpy().tolist() == [[lacking, 1, "'a' is not in the vocabulary"]]
    assert unavailable_exhibits(study, whole) == []
