"""Predictions of the BabyLM challenges' pipelines, of 2025 (a folder a revision) and of 2023 and 2024 (one file)."""

import gzip
import json

import pytest

from analysis.study.judgements import score_labels
from analysis.study.sources.source import sources
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

PAIRS = {"adjunct_island": [("a b", "b a"), ("c d", "d c"), ("e f", "f e")], "wh_island": [("g h", "h g")]}


@pytest.fixture
def pairs(tmp_path):
    folder = tmp_path / "blimp_filtered"
    folder.mkdir()
    for paradigm, of in PAIRS.items():
        rows = [
            {"sentence_good": good, "sentence_bad": bad, "linguistics_term": "islands", "pairID": str(place)}
            for place, (good, bad) in enumerate(of)
        ]  # fmt: skip
        (folder / f"{paradigm}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def predictions(**said):
    return {
        paradigm: {"predictions": [{"id": f"{paradigm}_{place}", "pred": f" {text}"} for place, text in enumerate(of)]}
        for paradigm, of in said.items()
    }


def write(tmp_path, revision, data, task="blimp", folder="blimp_filtered"):
    path = tmp_path / "results" / "my-model" / revision / "zero_shot" / "causal" / task / folder
    path.mkdir(parents=True)
    (path / "predictions.json").write_text(json.dumps(data))


def read(path, pairs, *overrides):
    words = ["source=babylm", f"path={path}", f"results.pairs={pairs}", *overrides]
    (study,) = sources()["babylm"].collect(compose("analysis", words))
    return study, sources()["babylm"].judge(study, score_labels(study)[0], "lp", "wrong")


def test_revisions_of_the_pipeline_are_a_trajectory(tmp_path, pairs):
    write(tmp_path, "chck_1M", predictions(adjunct_island=["a b", "d c", "f e"], wh_island=["g h"]))
    write(tmp_path, "chck_10M", predictions(adjunct_island=["a b", "c d", "f e"], wh_island=["h g"]))
    write(tmp_path, "main", predictions(adjunct_island=["a b", "c d", "e f"], wh_island=["g h"]))
    write(tmp_path, "chck_2M", predictions(hypernym=["x"]), folder="supplement_filtered")
    study, judged = read(tmp_path / "results", pairs, "results.unit=words_seen")
    assert judged.runs["size"].tolist() == ["1M words seen", "10M words seen"]
    assert set(judged.runs["model"]) == {"my-model"}
    assert judged.outcome.tolist() == [[1, 0, 0, 1], [1, 1, 0, 0]]
    assert (judged.of_paradigms, judged.over_training) == (False, True)
    (problem,) = study.problems.to_dict("records")
    assert "revision main says no size; give results.sizes={main:SIZE}" in problem["reason"]
    _, judged = read(tmp_path / "results", pairs, "results.unit=words_seen", "results.sizes={main:100M}")
    assert judged.runs["sample_words"].tolist() == [10**6, 10**7, 10**8]


def test_one_file_of_a_submission_beside_all_pairs(tmp_path, pairs):
    path = tmp_path / "ours_predictions.json.gz"
    said = predictions(adjunct_island=["c d", "f e"], wh_island=["g h"])
    path.write_bytes(gzip.compress(json.dumps({"glue": {}, "blimp": said}).encode()))
    _, judged = read(path, pairs, "results.size=100M")
    assert judged.pairs["pair_id"].tolist() == ["1", "2", "0"]
    assert judged.outcome.tolist() == [[1, 0, 1]]


def test_sentences_of_several_pairs_are_left_out(tmp_path, pairs):
    row = {"sentence_good": "a b", "sentence_bad": "z z", "linguistics_term": "islands", "pairID": "9"}
    with (pairs / "adjunct_island.jsonl").open("a") as file:
        file.write("\n" + json.dumps(row))
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(predictions(adjunct_island=["a b", "d c"])))
    study, judged = read(path, pairs, "results.size=1M")
    assert judged.outcome.tolist() == [[0]]
    assert (
        "predictions.json, adjunct_island: 1 of 2 predictions are left out, as several pairs have their sentence."
        in study.notes
    )


@pytest.mark.parametrize(
    ("data", "overrides", "message"),
    [
        (predictions(wh_island=["x y"]), ["results.size=1M"], "not one of the two sentences of the pair in"),
        (predictions(wh_island=["x", "y"]), ["results.size=1M"], "2 predictions of other pairs than the 1 in"),
        (predictions(wh_island=["g h"], other=["x"]), ["results.size=1M"], "results.pairs has no other.jsonl"),
        (predictions(wh_island=["g h"], adjunct_island=[]), ["results.size=1M"], "adjunct_island: its list of"),
        (predictions(adjunct_island=["a b", "b a"]), ["results.size=1M"], "two predictions of pair 0, must be one"),
        (predictions(adjunct_island=["d c", "d c"]), ["results.size=1M"], "two predictions of pair 1, must be one"),
        (predictions(other=["x"]), ["results.size=1M"], "no predictions of blimp"),
        (predictions(wh_island=["g h"]), [], "nothing says its size; give results.sizes="),
        ({"wh_island": {"predictions": [{"pred": 1}]}}, ["results.size=1M"], "must have a sentence as its 'pred'"),
    ],
)  # fmt: skip
def test_other_predictions_are_told_in_one_line(tmp_path, pairs, data, overrides, message):
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message):
        read(path, pairs, *overrides)


def test_predictions_of_two_runs_of_one_name_are_told_apart_by_a_pattern(tmp_path, pairs):
    for backend in ("causal", "mlm"):
        path = tmp_path / "results" / "my-model" / "chck_1M" / "zero_shot" / backend / "blimp" / "blimp_filtered"
        path.mkdir(parents=True)
        (path / "predictions.json").write_text(json.dumps(predictions(wh_island=["g h"])))
    with pytest.raises(InputError, match=r"a second row of model my-model.* named by results\.pattern, with"):
        read(tmp_path / "results", pairs, "results.unit=words_seen")


def test_a_revision_may_be_of_part_of_a_million_words(tmp_path, pairs):
    write(tmp_path, "chck_1.5M", predictions(wh_island=["g h"]))
    _, judged = read(tmp_path / "results", pairs, "results.unit=words_seen")
    assert judged.runs["sample_words"].tolist() == [1_500_000]


def test_a_revision_says_more_than_a_folder_above_it(tmp_path, pairs):
    write(tmp_path / "step2_eval", "chck_10M", predictions(wh_island=["g h"]))
    _, judged = read(tmp_path / "step2_eval", pairs, "results.unit=words_seen")
    assert judged.runs["sample_words"].tolist() == [10**7]


def test_a_checkpoint_is_no_size_of_a_text(tmp_path, pairs):
    write(tmp_path, "chck_1M", predictions(wh_island=["g h"]))
    with pytest.raises(ConfigError, match=r"1M in its path or revision is a checkpoint's.* results\.unit=tokens\|"):
        read(tmp_path / "results", pairs)
    _, judged = read(tmp_path / "results", pairs, "results.sizes={chck_1M:10M}")
    assert judged.runs["sample_words"].tolist() == [10_000_000]


def test_a_seed_that_is_no_number_is_told(tmp_path, pairs):
    write(tmp_path, "chck_1M", predictions(wh_island=["g h"]))
    with pytest.raises(InputError, match=r"results\.pattern: seed is 'model', must be a whole number"):
        read(tmp_path / "results", pairs, r"results.pattern='my-(?P<seed>\w+)/chck_(?P<size>\d+M)'")


def test_pairs_are_needed(tmp_path):
    (tmp_path / "predictions.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"source=babylm: give results\.pairs=FOLDER"):
        sources()["babylm"].collect(compose("analysis", ["source=babylm", f"path={tmp_path}"]))
    with pytest.raises(InputError, match=r"results\.pairs=nowhere: no such folder"):
        read(tmp_path, "nowhere")
