"""The multilingual track of BabyLM: a tiny study on made-up tables, compared with lm-evaluation-harness."""

import json

import numpy as np
import pandas as pd
import pytest

from eval.babylm import run as babylm
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.small_runs import for_training, overrides, trained, write_text
from train.runs.folder import RunFolder

PAIRS = [("w1 w3 w9 .", "w9 w3 w3 ."), ("w2 w6 .", "w2 w6 ."), ("w7 w7 w7 .", "w5 w15 w45 .")]  # the second one ties
ENDINGS = ["w9 w27 .", "w1 .", "w9 w27 ."]  # the first and the last one tie
CHOICES = [(prompt, ENDINGS, label) for prompt in ("w1 w3", "w300 ", "") for label in range(3)]
MULTIBLIMP = [("w4 w12 w36 .", "w12 w4 w4 .", "SV-#"), ("w8 w8 .", "w8 w24 .", "SV-P"), ("w9 w27 .", "w9 w9 .", "SV-P")]


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Train a tiny LSTM. Return its folder, and the overrides of commands that read the study."""
    folder = tmp_path_factory.mktemp("multilingual")
    write_text(folder)
    data = folder / "data/multilingual"
    for name, pairs in {"one": PAIRS, "two": PAIRS[:1]}.items():
        rows = [{"sentence_good": good, "sentence_bad": bad, "UID": name} for good, bad in pairs]
        write_rows(data / f"en/blimp/{name}.jsonl", rows)
        write_rows(data / f"nl/blimp_nl/{name}.jsonl", [row | {"category": "c"} for row in rows])
    rows = [{"prompt": prompt, "choices": options, "label": label} for prompt, options, label in CHOICES]
    write_rows(data / "en/hellaswag/test.jsonl", rows)
    rows = [{"sen": good, "wrong_sen": bad, "phenomenon": name, "lang": "eng"} for good, bad, name in MULTIBLIMP]
    (data / "en/multiblimp").mkdir()
    pd.DataFrame(rows).to_csv(data / "en/multiblimp/data.tsv", sep="\t")
    run = trained(compose("train", for_training(overrides(folder, "lstm", "runs", "study=s"))))
    shared = ["study=s", f"paths.runs={folder}/runs", f"paths.reports={folder}/reports", "trainer.progress=false"]
    return folder, run, [*shared, "trainer.accelerator=cpu", "track=multilingual", f"evaluation_data={folder}/data"]


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
def test_accuracies_are_those_of_lm_evaluation_harness(study, capsys):
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    folder, run, shared = study
    babylm(compose("babylm", shared))
    peer = HFLM(pretrained=str(run.model.path), trust_remote_code=True, batch_size=4, device="cpu")

    def right(items):
        """Return which items are right, as in the harness's tasks with multiple choices (ConfigurableTask)."""
        found = []
        for context, options, gold in items:
            requests = [Instance("loglikelihood", {}, (context, f" {option}"), n) for n, option in enumerate(options)]
            sums = [value for value, _ in peer.loglikelihood(requests, disable_tqdm=True)]
            found.append(np.argmax(sums) == gold)
        return found

    one, two = (right([("", pair, 0) for pair in pairs]) for pairs in (PAIRS, PAIRS[:1]))
    assert one[1]  # a tie
    multiblimp = right([("", (good, bad), 0) for good, bad, _ in MULTIBLIMP])
    hellaswag = right(CHOICES)
    assert 0 < np.mean(hellaswag) < 1
    expected = {
        "multiblimp_eng": np.mean(multiblimp),
        "blimp": (np.mean(one) + np.mean(two)) / 2,  # weight_by_size: false
        "hellaswag_en_mubench": np.mean(hellaswag),
        "blimp_nl": np.mean(one + two),
    }
    (file,) = (folder / "reports/s/babylm/multilingual/results").rglob("results*.json")
    assert file.parent.name == run.path.name  # print_results_table.py reads the model's name there
    results = json.loads(file.read_text())["results"]
    assert [(name, of["alias"]) for name, of in results.items()] == [
        ("zeroshot_eng", "zeroshot_eng"),
        ("multiblimp_eng", " - multiblimp_eng"),
        ("blimp", " - blimp"),
        ("hellaswag_en_mubench", " - hellaswag_en_mubench"),
        ("zeroshot_nld", "zeroshot_nld"),
        ("blimp_nl", " - blimp_nl"),
    ]
    assert {name: results[name]["acc,none"] for name in expected} == pytest.approx(expected)
    assert results["zeroshot_eng"]["acc,none"] == pytest.approx(np.mean([*multiblimp, *one, *two, *hellaswag]))

    printed = capsys.readouterr()
    assert "mubench (multilingual/en/winogrande)" in printed.err
    assert "multilingual/zh" not in printed.err  # there are no data in Chinese
    percent = [round(100 * expected[name], 2) for name in ("multiblimp_eng", "blimp", "hellaswag_en_mubench")]
    line = printed.out.partition("eng, zero-shot")[2].splitlines()[2]
    assert line.split()[1:] == [f"{value:.2f}" for value in (*percent, round(sum(percent) / 3, 2))]


@pytest.mark.slow
def test_results_of_fine_tuning_are_added(study, capsys):
    folder, run, shared = study
    for task, labels in {"sib200_nl": "abab", "mnli_nl": "aabb"}.items():
        tuned = RunFolder(run.path / f"finetuned/{task}/seed-1")
        tuned.path.mkdir(parents=True)
        tuned.update_manifest(status="done")
        pd.DataFrame({"label": list(labels), "predicted": list("abbb")}).to_csv(tuned.path / "predictions.csv")
    babylm(compose("babylm", [*shared, "languages=[nld]"]))
    results = folder / "reports/s/babylm/multilingual/finetune/results" / run.path.name
    found = {path.parent.name: json.loads(path.read_text()) for path in results.glob("nl/*/all_results.json")}
    assert found == {name: {"eval_accuracy": 0.75, "eval_samples": 4} for name in ("sib200", "mnli")}
    line = capsys.readouterr().out.partition("nld, fine-tuning")[2].splitlines()[2]
    assert line.split()[1:] == ["75.00", "75.00", "75.00"]


def test_settings_that_do_not_fit_raise_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"languages=\['nld'\]: only track=multilingual"):
        compose("babylm", ["study=s", "languages=[nld]"])
    with pytest.raises(InputError, match=r"multilingual/en/blimp for track=multilingual"):
        babylm(compose("babylm", ["study=s", "track=multilingual", f"evaluation_data={tmp_path}"]))
    with pytest.raises(ConfigError, match=r"task\.language: a value is needed"):
        compose("finetune", ["study=s", "task=multilingual", "task.name=sib200"])


def test_tables_for_fine_tuning_are_found_by_task_and_language():
    task = compose("finetune", ["task=multilingual_pairs", "task.name=mnli", "task.language=nl", "paths.data=d"]).task
    assert task.name == "mnli_nl"
    assert task.train == "d/babylm/multilingual/nl/mnli/mnli_nl.train.jsonl"
    assert task.valid == "d/babylm/multilingual/nl/mnli/mnli_nl.valid.jsonl"
    assert (task.first, task.second, task.batch) == ("{premise}", "{hypothesis}", 64)
