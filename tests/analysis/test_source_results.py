"""Results of lm-evaluation-harness (versions 0.3 and 0.4) and predictions of the BabyLM pipelines (2023 to 2025)."""

import gzip
import json

import pytest

from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from pairscale.errors import ConfigError, InputError

DATE = "2026-01-02T03-04-05.678901"
TASKS = {"blimp_adjunct_island": [1.0, 0.0, 1.0, 1.0], "blimp_wh_island": [0.0, 1.0]}
PAIRS = {"adjunct_island": [("a b", "b a"), ("c d", "d c"), ("e f", "f e")], "wh_island": [("g h", "h g")]}


def read(source, path, **results):
    return read_source(source, str(path), OutcomeColumns(), ResultsConfig(**results))


def shares(found):
    """Return accuracies by size and paradigm."""
    table = found.accuracies
    return dict(zip(zip(table["sample_words"], table["paradigm"], strict=True), table["accuracy"], strict=True))


def write_results(folder, revision, accuracies, *, samples=False, stamp=DATE, model="EleutherAI/pythia-70m", **more):
    """Write results of version 0.4 and, with `samples`, a line for each pair: (task, outcomes of its pairs)."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {task: {"alias": task, "acc,none": sum(of) / len(of)} for task, of in accuracies.items()}
    data = {
        "results": tasks | {"blimp": {"acc,none": 0.5}, "piqa": {"acc,none": 0.6}},
        "n-samples": {task: {"original": 1000, "effective": len(of)} for task, of in accuracies.items()},
        "config": {"model": "hf", "model_args": {"pretrained": model, "revision": revision}},
        "model_name": model,
    } | more
    (folder / f"results_{stamp}.json").write_text(json.dumps(data))
    for task, of in accuracies.items() if samples else ():
        lines = [
            {"doc_id": place, "doc": {"linguistics_term": "islands", "pairID": str(place)}, "acc": right}
            for place, right in enumerate(of)
        ]
        (folder / f"samples_{task}_{stamp}.jsonl").write_text("\n".join(map(json.dumps, lines)))


# lm-evaluation-harness


def test_results_of_version_4_are_accuracies_of_paradigms_and_samples_judgements_of_pairs(tmp_path):
    for samples in (False, True):
        for step in (1000, 2000):
            write_results(tmp_path / f"s{step}", f"step{step}", TASKS, samples=samples)
        found = read("lm_eval", tmp_path, unit="tokens", scale=2097152)
        assert found.runs[["model", "size"]].to_numpy().tolist() == [
            ["pythia-70m", "2.097B tokens"], ["pythia-70m", "4.194B tokens"],
        ]  # fmt: skip
        assert found.accuracies["accuracy"].tolist() == [0.75, 0.5] * 2
        assert found.accuracies["pairs"].tolist() == [4, 2] * 2
        assert set(found.accuracies["phenomenon"]) == {"island_effects"}
        assert (found.pairs is not None) == samples
    assert found.pairs["correct"].tolist() == [1, 0, 1, 1, 0, 1] * 2
    (tmp_path / "s2000" / f"samples_blimp_wh_island_{DATE}.jsonl").unlink()
    counted = read("lm_eval", tmp_path, unit="tokens", scale=2097152)
    assert counted.pairs is None
    assert shares(counted) == shares(found)


def test_a_pattern_tells_models_sizes_and_seeds_apart(tmp_path):
    for seed in (1, 2):
        write_results(tmp_path / f"run-s{seed}", "step1000", TASKS, model=f"/scratch/run-s{seed}/final")
    with pytest.raises(InputError, match=r"run-s2/.*second row of model final.*results\.pattern"):
        read("lm_eval", tmp_path, unit="steps")
    found = read("lm_eval", tmp_path, unit="steps", pattern=r"run-s(?P<seed>\d)/final.*step(?P<size>\d+)")
    assert found.runs["seed"].tolist() == [1, 2]


def test_results_of_version_3_have_no_numbers_of_pairs(tmp_path):
    pattern = r"(?P<model>pythia-[a-z0-9]+).*step(?P<size>\d+)"
    for step, accuracy in ((1000, 0.6), (2000, 0.7)):
        data = {"results": {"blimp_wh_island": {"acc": accuracy, "acc_stderr": 0.01}}, "config": {"model_args": {}}}
        (tmp_path / f"pythia-70m-0shot-global_step{step}_eval.json").write_text(json.dumps(data))
    found = read("lm_eval", tmp_path, pattern=pattern)
    assert found.accuracies["pairs"].isna().all()
    assert found.accuracies["accuracy"].tolist() == [0.6, 0.7]
    assert read("lm_eval", tmp_path, pattern=pattern, n=1000).accuracies["pairs"].tolist() == [1000, 1000]


def test_tasks_of_a_run_may_be_in_several_files_and_the_later_of_two_counts(tmp_path):
    write_results(tmp_path / "a", "step1000", {"blimp_wh_island": [0, 0, 0, 1]}, stamp="2026-05-01T10-00-00")
    write_results(tmp_path / "b", "step1000", {"blimp_wh_island": [0, 1, 1, 1]}, stamp="2025-05-01T10-00-00.123456")
    write_results(tmp_path / "b", "step1000", {"blimp_adjunct_island": [0, 1]}, stamp="2025-04-01T10-00-00.123456")
    found = shares(read("lm_eval", tmp_path, unit="steps"))
    assert found == {(1000, "adjunct_island"): 0.5, (1000, "wh_island"): 0.25}


def test_tasks_of_another_benchmark_are_no_paradigms(tmp_path):
    others = {"blimp_nl": [1.0], "blimp_nl__adverbs": [1.0], "blimp_nl__adverbs__place": [1.0, 0.0]}
    groups = {"blimp_nl": ["blimp_nl__adverbs"], "blimp_nl__adverbs": ["blimp_nl__adverbs__place"]}
    write_results(tmp_path / "m", "step1000", TASKS | others, group_subtasks=groups)
    assert {name for _, name in shares(read("lm_eval", tmp_path, unit="steps"))} == {"adjunct_island", "wh_island"}
    assert shares(read("lm_eval", tmp_path, unit="steps", benchmark="blimp_nl")) == {(1000, "adverbs__place"): 0.5}


@pytest.mark.parametrize(
    ("revision", "size"), [("step-1000-b", 1000), ("step1.5k", 1500), ("chck_0.5M", 500_000), ("step2e3", 2000)]
)
def test_a_revision_says_its_size(tmp_path, revision, size):
    write_results(tmp_path / "step2_eval", revision, TASKS)  # the revision says more than a folder
    assert read("lm_eval", tmp_path, unit="words_seen").runs["sample_words"].tolist() == [size]
    with pytest.raises(InputError, match=r"step2_eval/results_.*results\.unit=tokens"):  # and not that of a text
        read("lm_eval", tmp_path)
    assert read("lm_eval", tmp_path, size="1k").runs["sample_words"].tolist() == [1000]


def test_a_size_that_cannot_be_read_is_not_cut_short(tmp_path):
    write_results(tmp_path / "a", "step10K", TASKS)
    with pytest.raises(InputError, match=r"size is '10K'.*results\.sizes="):
        read("lm_eval", tmp_path, unit="words_seen")
    assert read("lm_eval", tmp_path, unit="steps", sizes={"10K": "1000M"}).runs["sample_words"].tolist() == [10**9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "x.json: .*results"),
        ('{"results": {"piqa": {"acc": 1}}}', r"x\.json: .*blimp_\*"),
        ('{"results": {"blimp_wh_island": {"f1,none": 1}}}', r"blimp_wh_island: accuracy is None.*results\.metric"),
        ('{"results": {"blimp_wh_island": {"acc": 2}}}', "blimp_wh_island: accuracy is 2.* from 0 to 1"),
    ],
)
def test_other_files_are_told_in_one_line(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read("lm_eval", tmp_path / "x.json", size="1M")


# BabyLM


@pytest.fixture
def pairs(tmp_path):
    folder = tmp_path / "blimp_filtered"
    folder.mkdir()
    for paradigm, of in PAIRS.items():
        lines = [
            {"sentence_good": good, "sentence_bad": bad, "linguistics_term": "islands", "pairID": str(place)}
            for place, (good, bad) in enumerate(of)
        ]
        (folder / f"{paradigm}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def predictions(**said):
    return {
        paradigm: {"predictions": [{"id": f"{paradigm}_{place}", "pred": f" {text}"} for place, text in enumerate(of)]}
        for paradigm, of in said.items()
    }


def write_predictions(tmp_path, revision, data, folder="blimp_filtered"):
    path = tmp_path / "results" / "my-model" / revision / "zero_shot" / "causal" / "blimp" / folder
    path.mkdir(parents=True)
    (path / "predictions.json").write_text(json.dumps(data))


def test_revisions_of_the_pipeline_are_a_trajectory(tmp_path, pairs):
    write_predictions(tmp_path, "chck_1M", predictions(adjunct_island=["a b", "d c", "f e"], wh_island=["g h"]))
    write_predictions(tmp_path, "chck_10M", predictions(adjunct_island=["a b", "c d", "f e"], wh_island=["h g"]))
    write_predictions(tmp_path, "main", predictions(adjunct_island=["a b", "c d", "e f"], wh_island=["g h"]))
    write_predictions(tmp_path, "chck_2M", predictions(hypernym=["x"]), folder="supplement_filtered")
    found = read("babylm", tmp_path / "results", unit="words_seen", pairs=str(pairs))
    assert found.runs["size"].tolist() == ["1M words seen", "10M words seen"]
    assert set(found.runs["model"]) == {"my-model"}
    assert found.pairs["correct"].tolist() == [1, 0, 0, 1, 1, 1, 0, 0]
    assert any("/main/" in note and "results.sizes=" in note for note in found.notes)
    more = read("babylm", tmp_path / "results", unit="words_seen", pairs=str(pairs), sizes={"main": "100M"})
    assert more.runs["sample_words"].tolist() == [10**6, 10**7, 10**8]


def test_a_submission_is_one_file(tmp_path, pairs):
    path = tmp_path / "ours_predictions.json.gz"
    said = predictions(adjunct_island=["b a", "c d", "f e"], wh_island=["g h"])
    path.write_bytes(gzip.compress(json.dumps({"glue": {}, "blimp": said}).encode()))
    found = read("babylm", path, size="100M", pairs=str(pairs))
    assert found.pairs["pair_id"].tolist() == ["0", "1", "2", "0"]
    assert found.pairs["correct"].tolist() == [0, 1, 0, 1]
    assert set(found.runs["model"]) == {"ours_predictions"}
    with pytest.raises(ConfigError, match=r"results\.pairs=None"):
        read("babylm", path, size="100M")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (predictions(wh_island=["x y"]), "wh_island: prediction is 'x y'"),
        (predictions(wh_island=["x", "y"]), "wh_island: 2 predictions, but .* 1 pairs"),
        (predictions(other=["x"]), r"results\.pairs="),
        ([], "expected object"),
    ],
)
def test_other_predictions_are_told_in_one_line(tmp_path, pairs, data, message):
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message):
        read("babylm", path, pairs=str(pairs), size="1M")
