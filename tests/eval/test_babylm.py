"""`python -m eval.babylm`: a tiny study on made-up tables, and the submission against the form of the pipeline."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from eval import ages, load_scorer, submission
from eval.babylm import run as babylm
from eval.surprisal.run import run as surprisal
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.small_runs import for_training, overrides, trained, write_text
from train.runs.folder import ModelFolder, RunFolder

PAIRS = {"one": [("w1 w3 w9 .", "w9 w3 w3 ."), ("w2 w6 .", "w6 w2 .")], "two": [("w5 w15 w45 .", "w5 w5 w5 .")]}
CHECKPOINTS = {"chck_1M": 12_000, "chck_2M": 24_000, "chck_3M": 36_000}
READING = [("w1", "w3", ""), ("w1 w3", "w9", "w1"), ("", "w7", ""), ("None w2", "w6", "None")]
SOLUTIONS = ["w9", "w9 w27 w81 .", "w300 w300 .", "w2 w6 ."]
AGES = {"w3": ["w1", "w2"], "w9": ["w1 w3", "w3"], "w4": ["w1"], "x": ["w1", "w2"]}


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def write_data(data):
    """Write made-up tables in the form of the challenge's data, without the supplement."""
    for folder in ("full_eval/blimp_filtered", "fast_eval/blimp_fast"):
        for name, pairs in PAIRS.items():
            rows = [{"sentence_good": good, "sentence_bad": bad, "UID": name, "field": "f"} for good, bad in pairs]
            write_rows(data / folder / f"{name}.jsonl", rows)
    options = ["w9 w27 .", "w1 .", "w300 w300 ."]
    rows = [{"input_prefix": "w1 w3 ", "options": options, "numops": of} for of in (0, 0, 1)]
    rows.insert(0, {"input_prefix": "w1 w3 ", "options": ["w9 nothing .", *options], "numops": 0})
    write_rows(data / "full_eval/entity_tracking/move_contents.jsonl", rows)
    row = {"prefix_acceptable": "w1 w3", "prefix_unacceptable": "w8 w8", "property_phrase": "w9 w27 ."}
    write_rows(data / "full_eval/comps/comps_wugs_dist-before.jsonl", [row] * 2)
    row = {"Domain": "d", "Context1": "w1 w3", "Context2": "w8 w8", "Target1": "w9 w27 .", "Target2": "w5 w15 ."}
    write_rows(data / "full_eval/ewok_filtered/d.jsonl", [row])
    for part, count in (("parallel", 4), ("nonparallel", 2)):
        solutions = {f"solution{number}": text for number, text in enumerate(SOLUTIONS[:count])}
        rows = [{"prompt": "w1 w3", **solutions, "label": 1, "example_id": f"item-{number}"} for number in (7, 3)]
        for folder in ("full_eval", "fast_eval"):
            write_rows(data / folder / f"global_piqa_{part}/eng_latn.jsonl", rows)
    table = pd.DataFrame(READING, columns=["item", "word", "prev_item"])
    (data / "full_eval/reading").mkdir()
    table.to_csv(data / "full_eval/reading/reading_data.csv")
    (data / "full_eval/aoa").mkdir()
    found = {word: [{"context": context} for context in contexts] for word, contexts in AGES.items()}
    (data / "full_eval/aoa/cdi_childes.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Train a tiny LSTM with three snapshots. Return its folder, and the overrides of commands that read the study."""
    folder = tmp_path_factory.mktemp("babylm")
    write_text(folder)
    write_data(folder / "data")
    more = ["study=s", "trainer.snapshots=[12k,24k]"]
    run = trained(compose("train", for_training(overrides(folder, "lstm", "runs", *more))))
    shared = ["study=s", f"paths.runs={folder}/runs", f"paths.reports={folder}/reports", "trainer.progress=false"]
    return folder, run, [*shared, "trainer.accelerator=cpu"]


@pytest.fixture(autouse=True)
def few_checkpoints(monkeypatch):
    monkeypatch.setitem(submission.CHECKPOINTS, "strict-small", CHECKPOINTS)


def submitted(study, *more):
    folder, run, shared = study
    babylm(compose("babylm", [*shared, f"evaluation_data={folder}/data", *more]))
    (path,) = (folder / "reports/s/babylm" / run.path.name).glob("*.json")
    assert path.name == "all_full_preds_and_fast_scores_causal.json"
    return json.loads(path.read_text())


def nats(scorer, context, text):
    """Return the log-probability of a text after a context."""
    whole = f"{context} {text}" if context else text
    (scored,) = scorer.score([whole])
    of_text = scored.spans[:, 1] > len(context)
    of_text &= scored.spans[:, 0] < len(whole)  # without <eos>
    return float(scored.logprobs[of_text].sum())


@pytest.mark.slow
def test_submission_has_the_chosen_texts_in_the_order_of_the_data(study, capsys):
    folder, run, _ = study
    found, scorer = submitted(study), load_scorer(run.model.path)
    likelier = {
        name: [max(pair, key=lambda text: nats(scorer, "", text)) for pair in pairs] for name, pairs in PAIRS.items()
    }
    assert found["blimp"] == {
        "one": {
            "predictions": [{"id": "one_0", "pred": likelier["one"][0]}, {"id": "one_1", "pred": likelier["one"][1]}]
        },
        "two": {"predictions": [{"id": "two_0", "pred": likelier["two"][0]}]},
    }
    option = max(["w9 w27 .", "w1 .", "w300 w300 ."], key=lambda text: nats(scorer, "w1 w3", text))
    assert found["entity_tracking_filtered"] == {
        "move_contents_0_ops": {"predictions": [{"id": f"move_contents_0_ops_{n}", "pred": option} for n in (0, 1)]},
        "move_contents_1_ops": {"predictions": [{"id": "move_contents_1_ops_0", "pred": option}]},
    }
    before = max(["w1 w3", "w8 w8"], key=lambda context: nats(scorer, context, "w9 w27 ."))
    pred = f"{before} w9 w27 ."
    assert found["comps"] == {
        "wugs_dist_before": {"predictions": [{"id": f"wugs_dist_before_{n}", "pred": pred} for n in (0, 1)]}
    }
    assert found["ewok"] == {"d": {"predictions": [{"id": "d_0", "pred": pred}]}}
    for part, count in (("parallel", 4), ("nonparallel", 2)):
        means = [nats(scorer, "w1 w3", text) / len(text.split()) for text in SOLUTIONS[:count]]
        pred = f" {SOLUTIONS[np.argmax(means)]}"
        predictions = {name: {"predictions": [{"id": f"{name}_0", "pred": pred}]} for name in ("item-7", "item-3")}
        assert found[f"global_piqa_{part}"] == predictions
    assert found["glue"] == {}
    assert [name for name, value in found.items() if value is None] == [
        "blimp_supplement",
        "reading",
        "aoa_surprisals",
        "aoa",
    ]

    table = pd.read_csv(folder / "reports/s/babylm/accuracies.csv").set_index(["revision", "task", "subtask"])
    right = np.mean([text == good for text, (good, _) in zip(likelier["one"], PAIRS["one"], strict=True)])
    assert table.loc[("main", "blimp", "one"), "accuracy"] == pytest.approx(100 * right)
    fast = found["fast_eval_results"]["blimp"]
    right = float(np.argmax(means) == 1)
    assert found["fast_eval_results"]["global_piqa_nonparallel"][2] == {"global_piqa_nonparallel": right}
    assert found["fast_eval_results"]["ewok"] == [None] * 3
    assert [list(one) for one in fast] == [["one", "two"]] * 3
    of_snapshots = [table.loc[(name, "blimp", "one"), "accuracy"] / 100 for name in CHECKPOINTS]
    assert [one["one"] for one in fast] == pytest.approx(of_snapshots)

    printed = capsys.readouterr()
    assert "python -m eval.fetch benchmark=NAME" in printed.err
    assert "blimp_supplement (full_eval/supplement_filtered)" in printed.err
    assert "babylm_blimp has 3 items instead of 59,875" in printed.err
    both = {
        name: np.mean([text == pair[0] for text, pair in zip(likelier[name], PAIRS[name], strict=True)])
        for name in PAIRS
    }
    assert f"{100 * np.mean([*both.values()]):.2f}" in printed.out.rpartition(run.path.name)[2].split()


@pytest.mark.slow
def test_results_that_are_there_are_added(study):
    folder, run, shared = study
    tuned = RunFolder(run.path / "finetuned/rte/seed-1")
    tuned.path.mkdir(parents=True)
    tuned.update_manifest(status="done", best={"accuracy": 0.5})
    pd.DataFrame({"row": [0, 1], "label": [1, 0], "predicted": [1, 1]}).to_csv(tuned.path / "predictions.csv")
    words = [("1", "w1"), ("1", "w3"), ("1", "w9"), ("2", "None"), ("2", "w7"), ("3", "None"), ("3", "w2"), ("3", "w6")]
    pd.DataFrame(words, columns=["text_id", "word"]).to_csv(folder / "reading_data.csv", index=False)
    surprisal(compose("surprisal", [*shared, f"text={folder}/reading_data.csv"]))
    rows = [
        (f"{word} {number}", text, target)
        for word, contexts in AGES.items()
        for number, context in enumerate(contexts)
        for text, target in ((context, False), (word, True))
    ]
    pd.DataFrame(rows, columns=["text_id", "word", "target"]).to_csv(folder / "contexts.csv", index=False)
    surprisal(compose("surprisal", [*shared, f"text={folder}/contexts.csv", "scoring.snapshots=true"]))
    tables = folder / "reports/s/reading/reading_data/tables"
    tables.mkdir(parents=True)
    scores = pd.DataFrame({"run": [run.path.name] * 3, "self_paced_r2": [1.0, 2.0, 3.0], "eye_tracking_r2": 4.0})
    scores.tail(1).to_csv(tables / "models.csv")
    scores.assign(words_seen=CHECKPOINTS.values()).to_csv(tables / "snapshots.csv")
    found, scorer = submitted(study), load_scorer(run.model.path)

    assert found["fast_eval_results"]["reading"] == [{"spr": percent / 100, "rt": 0.04} for percent in (1, 2, 3)]
    predictions = [{"id": "rte_0", "pred": 1}, {"id": "rte_1", "pred": 1}]
    assert found["glue"] == {"rte": {"predictions": predictions}}
    expected = [-nats(scorer, context or "None", word) for context, word, _ in READING]  # as the pipeline
    before = [-nats(scorer, "", "w1"), -nats(scorer, "w1", "w3"), math.nan, math.nan]
    before[0] = math.nan  # there is no context before the word before
    read = found["reading"]["reading"]["predictions"]
    assert [row["id"] for row in read] == [0, 1, 2, 3]
    assert [row["pred"] for row in read] == pytest.approx(expected, abs=1e-4)
    assert [row["prev_pred"] for row in read] == pytest.approx(before, abs=1e-4, nan_ok=True)

    of_words = [
        (name, asked, word, number, context)
        for name, asked in CHECKPOINTS.items()
        for word in ("w3", "w9", "w4")  # the other one is a letter
        for number, context in enumerate(AGES[word])
    ]
    columns = ["step", "word_count", "target_word", "context_id", "context"]
    results = found["aoa_surprisals"]["results"]
    assert [tuple(row[name] for name in columns) for row in results] == of_words
    assert list(results[0]) == [*columns, "surprisal"]
    exported = -nats(scorer, "w1 w3", "w9")
    assert results[-3]["surprisal"] == pytest.approx(exported, abs=1e-4)  # the last snapshot is the exported model

    table = pd.read_csv(folder / "reports/s/babylm/accuracies.csv").set_index(["task", "subtask"])
    assert table.loc[("glue", "rte"), "accuracy"] == 50
    assert table.loc[("reading", "spr")].set_index("revision").loc["main", "accuracy"] == 3


@pytest.mark.slow
def test_tasks_scored_already_are_skipped_and_a_missing_checkpoint_is_named(study, monkeypatch, capsys):
    _folder, run, _ = study
    before = submitted(study)
    files = {path: path.stat().st_mtime_ns for path in run.path.glob("scores/*/*.parquet")}
    monkeypatch.setitem(submission.CHECKPOINTS, "strict-small", CHECKPOINTS | {"chck_4M": 48_000})
    after = submitted(study)
    assert files == {path: path.stat().st_mtime_ns for path in run.path.glob("scores/*/*.parquet")}
    assert after["blimp"] == before["blimp"]
    assert after["fast_eval_results"]["blimp"] == [*before["fast_eval_results"]["blimp"], None]
    assert "no results at some checkpoints (chck_4M)" in capsys.readouterr().err


def test_without_study_or_data(study, tmp_path):
    _, _, shared = study
    with pytest.raises(ConfigError, match="Add study=NAME"):
        babylm(compose("babylm", [f"evaluation_data={tmp_path}"]))
    with pytest.raises(InputError, match=rf"evaluation_data={tmp_path}.*full_eval"):
        babylm(compose("babylm", [*shared, f"evaluation_data={tmp_path}"]))


def test_checkpoints_are_those_of_the_pipeline():
    large = list(submission.CHECKPOINTS["strict"].values())
    million = 10**6
    assert len(large) == 28
    assert large[-1] == 1000 * million
    assert large[18:20] == [100 * million, 200 * million]
    near, nearer = 200 * million + 5_000, 200 * million - 20
    assert submission.revisions_of("strict", [near, 150 * million]) == {near: "chck_200M"}
    assert submission.revisions_of("strict", [near, nearer]) == {nearer: "chck_200M"}


def test_form_of_predictions_and_of_results_at_checkpoints():
    rows = pd.DataFrame({"subtask": ["b", "a", "b"], "pred": ["w2 .", "w1 .", "w3 ."], "right": [True, True, False]})
    rows["key"] = rows["subtask"]
    assert submission.collated(rows) == {
        "b": {"predictions": [{"id": "b_0", "pred": "w2 ."}, {"id": "b_1", "pred": "w3 ."}]},
        "a": {"predictions": [{"id": "a_0", "pred": "w1 ."}]},
    }
    assert submission.accuracies_of(rows) == {"a": 1.0, "b": 0.5}
    found = {
        "blimp": {"chck_2M": {"a": 0.2}, "chck_1M": {"a": 0.1}, "chck_3M": {"a": 0.3}, "chck_9M": {"a": 0.9}},
        "ewok": {"chck_1M": {"a": 0.1}, "chck_3M": {"a": 0.3}},
    }
    results = submission.fast_results("strict-small", found)
    assert results["blimp"] == [{"a": 0.1}, {"a": 0.2}, {"a": 0.3}]
    assert results["ewok"] == [{"a": 0.1}, None, {"a": 0.3}]
    assert results["reading"] == [None] * 3


def test_backend_is_the_pipelines_name_for_the_kind_of_model():
    masked = [{"method": "mean_pll", "policy": {}}, {"method": "pll", "policy": {"pll_shift": 1}}]
    assert [*map(submission.backend, [{"method": "lp", "policy": {}}, *masked])] == ["causal", "mlm", "mntp"]


def test_ages_are_where_exact_sigmoids_reach_their_levels(tmp_path):
    words_seen, chance, middle, slope = np.array([1e6, 2e6, 5e6, 1e7, 3e7, 1e8]), math.log(500), 6.7, 3.0
    x = np.log10(words_seen + 1)
    nats = chance - 4 / (1 + np.exp(-slope * (x - middle)))
    half = (chance - nats.min()) / 2  # how far the surprisal has fallen from chance
    assert ages.model_age(words_seen, nats, chance) == pytest.approx(middle - math.log(4 / half - 1) / slope)
    assert ages.model_age(words_seen, nats[::-1], chance) is None  # a rising surprisal
    months = np.arange(16, 31)
    known = pd.Series(1 / (1 + np.exp(-0.4 * (months - 22.5))), months.astype(str))
    assert ages.child_age(known) == pytest.approx(22.5)
    assert ages.child_age(known - known.max() + 0.3) is None


def test_score_of_ages_is_the_correlation_over_words_that_both_know(tmp_path, monkeypatch):
    folder = tmp_path / "full_eval/aoa"
    folder.mkdir(parents=True)
    rows, lines = [], ["word," + ",".join(map(str, range(16, 31)))]
    points = {"w1": (6.3, 18), "w3": (6.6, 21), "w9": (6.8, 20), "w27": (7.2, 26), "never": (9.9, 40)}
    seen = [10**power for power in (6, 6.25, 6.5, 6.75, 7, 7.25, 7.5, 8)]
    for word, (middle, age) in points.items():
        falls = 5 / (1 + np.exp(-4 * (np.log10(seen) - middle)))
        rows += [
            {"target_word": word, "word_count": words, "surprisal": math.log(500) - fall + more}
            for words, fall in zip(seen, falls, strict=True)
            for more in (-0.1, 0.1)  # two contexts
        ]
        lines.append(f"{word}," + ",".join(f"{1 / (1 + math.exp(0.5 * (age - month)))}" for month in range(16, 31)))
    assert ages.score(rows, tmp_path, tmp_path, 500) is None  # no ages of children
    (folder / "cdi_human.csv").write_text("\n".join(lines))
    texts = pd.DataFrame({"tokens": [1] * 5}, index=[f"{word} 0" for word in points])
    monkeypatch.setattr(ages, "_targets", lambda path: texts)
    halves = [
        middle - math.log(5 / (5 / (1 + math.exp(-4 * (8 - middle))) / 2) - 1) / 4 for middle, _ in points.values()
    ]
    expected = np.corrcoef(halves[:4], [age for _, age in points.values()][:4])[0, 1]
    assert ages.score(rows, tmp_path, tmp_path, 500) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_results_of_other_texts_or_models_and_incomplete_scores_are_refused(study, monkeypatch, tmp_path):
    folder = study[0]
    table = folder / "data/full_eval/reading/reading_data.csv"
    before = table.read_text()
    words = pd.DataFrame([("1", "w1"), ("1", "w3"), ("1", "w9")], columns=["text_id", "word"])
    words.to_csv(folder / "reading_data.csv", index=False)
    surprisal(compose("surprisal", [*study[2], f"text={folder}/reading_data.csv"]))
    with pytest.raises(InputError, match=r"row 3 of .*reading_data\.csv isn't in it \(w7\)"):
        submitted(study)
    table.write_text(before.replace("prev_item", "other"))
    with pytest.raises(InputError, match="no column 'prev_item'"):
        submitted(study)
    table.write_text(before)
    monkeypatch.setattr(ModelFolder, "digest", lambda self: "other")
    with pytest.raises(RunError, match=r"reading_data.*are another model's"):
        submitted(study)
    with pytest.raises(RunError, match=r"lp\.parquet: 1 of 3 items have no score"):
        submission.check_complete(pd.Series([1.0, math.nan, 0.0]), tmp_path / "lp.parquet")


def test_a_study_without_finished_runs_is_explained(study, tmp_path):
    folder, run, _ = study
    (tmp_path / "s" / run.path.name).mkdir(parents=True)
    (tmp_path / "s" / run.path.name / "config.yaml").write_bytes(run.config.read_bytes())
    words = ["study=s", f"evaluation_data={folder}/data", f"paths.runs={tmp_path}", f"paths.reports={tmp_path}"]
    with pytest.raises(RunError, match="no run"):
        babylm(compose("babylm", words))
