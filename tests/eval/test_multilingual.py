"""The multilingual track of BabyLM: a tiny study on made-up tables, compared with lm-evaluation-harness."""

import json

import numpy as np
import pandas as pd
import pytest

from eval import submission as submissions
from eval.babylm import run as babylm
from eval.methods.sides import Side
from eval.scorers.base import TokenScores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.small_runs import for_training, overrides, trained, write_text
from train.runs.folder import RunFolder

PAIRS = [("w1 w3 w9 .", "w9 w3 w3 ."), ("w2 w6 .", "w2 w6 ."), ("w7 w7 w7 .", "w5 w15 w45 .")]  # the second one ties
ENDINGS = ["w9 w27 .", "w1 .", "w9 w27 ."]  # the first and the last one tie
CHOICES = [(prompt, ENDINGS, label) for prompt in ("w1 w3", "w300 ", "") for label in range(3)]
# The last two tie.
SOLUTIONS = [
    (prompt, [*options, "w9 w9 w27 w81 .", "w9 w9 w27 w81 ."], label)
    for prompt, options in (("w1 w3", ["w9 w5 .", "w1"]), ("w8 w8", ["w8", "w24 w2 ."]), ("w2", ["w44 w1", "w7 w3"]))
    for label in range(4)
]
MULTIBLIMP = [("w4 w12 w36 .", "w12 w4 w4 .", "SV-#"), ("w8 w8 .", "w8 w24 .", "SV-P"), ("w9 w27 .", "w9 w9 .", "SV-P")]
HANZI = [*PAIRS, ("w1 w3 w9 .", "三 三 三"), ("w7 三 w7 .", "w5 w15 w45 .")]  # the last two contain unknown words


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


@pytest.fixture(autouse=True)
def few_checkpoints(monkeypatch):
    checkpoints = {"chck_1M": 12_000, "chck_2M": 36_000, "chck_3M": 10**6}
    monkeypatch.setitem(submissions.CHECKPOINTS, "strict", checkpoints)


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
    rows = [
        {"prompt": prompt, **{f"solution{n}": text for n, text in enumerate(options)}, "label": label, "example_id": at}
        for at, (prompt, options, label) in enumerate(SOLUTIONS)
    ]
    write_rows(data / "nl/global_piqa_parallel/nld_latn.jsonl", rows)
    rows = [{"UID": good[:2], "sentence_good": good, "sentence_bad": bad, "pair_id": 0} for good, bad in HANZI]
    write_rows(data / "zh/hanzi_pinyin/train.jsonl", rows)
    rows = [{"sen": good, "wrong_sen": bad, "phenomenon": name, "lang": "eng"} for good, bad, name in MULTIBLIMP]
    (data / "en/multiblimp").mkdir()
    pd.DataFrame(rows).to_csv(data / "en/multiblimp/data.tsv", sep="\t")
    run = trained(
        compose("train", for_training(overrides(folder, "lstm", "runs", "study=s", "trainer.snapshots=[12k]")))
    )
    shared = ["study=s", f"paths.runs={folder}/runs", f"paths.reports={folder}/reports", "trainer.progress=false"]
    return folder, run, [*shared, "trainer.accelerator=cpu", "track=multilingual", f"evaluation_data={folder}/data"]


def written(folder, run, name):
    """Return the contents of a file of the run's submission."""
    path = folder / f"reports/s/babylm/multilingual/{run.path.name}/{run.path.name}_{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
def test_accuracies_are_those_of_lm_evaluation_harness(study, capsys):
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from lm_eval.utils import hash_string

    folder, run, shared = study
    babylm(compose("babylm", [*shared, "scoring.snapshots=false"]))
    peer = HFLM(pretrained=str(run.model.path), trust_remote_code=True, batch_size=4, device="cpu")

    def scores(items):
        """Yield the log-probabilities of an item's options, and the number of the right one."""
        for context, options, gold in items:
            requests = [Instance("loglikelihood", {}, (context, f" {option}"), n) for n, option in enumerate(options)]
            yield np.array([value for value, _ in peer.loglikelihood(requests, disable_tqdm=True)]), gold

    def right(items):
        """Return the outcome of each item as in the pipeline: a tie of k options counts as 1/k."""
        return [float(sums[gold] == sums.max()) / (sums == sums.max()).sum() for sums, gold in scores(items)]

    one, two = (right([("", pair, 0) for pair in pairs]) for pairs in (PAIRS, PAIRS[:1]))
    assert one[1] == 0.5
    multiblimp = right([("", (good, bad), 0) for good, bad, _ in MULTIBLIMP])
    hellaswag = right(CHOICES)
    assert 0 < np.mean(hellaswag) < 1
    lengths = [[len(text.split()) for text in options] for _, options, _ in SOLUTIONS]  # a token is a word
    piqa = [
        np.argmax(sums / counts) == gold for (sums, gold), counts in zip(scores(SOLUTIONS), lengths, strict=True)
    ]  # the first of the best ones
    assert 0 < np.mean(piqa) < 1
    expected = {
        "blimp_babylm_filtered": np.mean(one + two),
        "multiblimp_eng": np.mean(multiblimp),
        "hellaswag_en_mubench": np.mean(hellaswag),
        "blimp_nl": np.mean(one + two),
        "global_piqa_parallel_nl": np.mean(piqa),
    }
    submission, predictions = written(folder, run, "submission"), written(folder, run, "predictions")
    assert submission == {name: {name: pytest.approx(value)} for name, value in expected.items()}
    assert set(predictions) == {"zeroshot", "finetune", "hidden"}
    results = predictions["zeroshot"]
    assert results["zeroshot_eng"] == {
        "alias": "zeroshot_eng",
        "acc,none": pytest.approx(np.mean([*multiblimp, *one, *two, *hellaswag])),
    }
    assert results["blimp_babylm_filtered"]["alias"] == " - blimp_babylm_filtered"
    assert results["blimp_babylm_filtered_one"]["acc,none"] == pytest.approx(np.mean(one))
    assert results["global_piqa_nld"] == {"alias": "global_piqa_nld", "acc_norm,none": pytest.approx(np.mean(piqa))}

    hanzi = [sums for sums, _ in scores([("", pair, 0) for pair in HANZI])]
    hidden = list(predictions["hidden"]["hanzi_pinyin"].items())
    assert [of["scores"] for _, of in hidden] == [pytest.approx(sums, abs=1e-4) for sums in hanzi]
    # As in collate_results.py, a tie is unknown too.
    unknown = [False, True, False, hanzi[3][0] >= hanzi[3][1], hanzi[4][0] >= hanzi[4][1]]
    assert any(unknown[3:])
    assert [of["has_unk"] for _, of in hidden] == unknown
    assert results["hanzi_pinyin"]["acc,none"] == pytest.approx(sum(good > bad for good, bad in hanzi[:3]) / 5)
    lines = (folder / "data/multilingual/zh/hanzi_pinyin/train.jsonl").read_text(encoding="utf-8").splitlines()
    docs = [json.loads(line) for line in lines]
    hashes = [hash_string(json.dumps(doc, indent=2, ensure_ascii=False)) for doc in docs]  # as in lm_eval/evaluator.py
    assert [key for key, _ in hidden] == [f"{at}:{text}" for at, text in enumerate(hashes)]

    printed = capsys.readouterr()
    assert "mubench (multilingual/en/winogrande)" in printed.err
    percent = [
        round(100 * expected[name], 2) for name in ("blimp_babylm_filtered", "multiblimp_eng", "hellaswag_en_mubench")
    ]
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
    submission, predictions = written(folder, run, "submission"), written(folder, run, "predictions")
    assert {name: submission[name] for name in ("sib200", "mnli")} == {"sib200": {"nl": 0.75}, "mnli": {"nl": 0.75}}
    rows = [{"index": at, "prediction": name} for at, name in enumerate("abbb")]
    assert predictions["finetune"] == {"sib200_nl": rows, "mnli_nl": rows}
    printed = capsys.readouterr()
    line = printed.out.partition("nld, fine-tuning")[2].splitlines()[2]
    assert line.split()[1:] == ["75.00", "75.00", "75.00"]
    assert "there are no results at some checkpoints (chck_3M)" in printed.err


@pytest.mark.slow
def test_snapshots_are_scored_on_the_same_tasks(study):
    folder, run, shared = study
    babylm(compose("babylm", [*shared, "languages=[nld,zho]"]))
    submission, predictions = written(folder, run, "submission"), written(folder, run, "predictions")
    first, last, empty = predictions["fast_eval_results"]
    assert first.keys() == last.keys() == {"blimp_nl", "global_piqa_parallel_nl", "hanzi_pinyin"}
    # The last snapshot has the weights of the model.
    share = predictions["zeroshot"]["hanzi_pinyin"]["acc,none"]
    of_tasks = {name: submission[name][name] for name in ("blimp_nl", "global_piqa_parallel_nl")}
    assert last == of_tasks | {"hanzi_pinyin": share}
    assert empty == {}
    table = pd.read_csv(folder / "reports/s/babylm/multilingual/accuracies.csv")
    found = table[table["task"] == "blimp_nl"].drop_duplicates("revision", ignore_index=True)
    assert found["revision"].tolist() == ["main", "chck_1M", "chck_2M"]
    assert found["words_seen"].tolist()[1:] == pytest.approx([12_000, 36_000], rel=0.01)


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


def test_a_blank_before_a_text_is_not_an_unknown_word():
    tokens = TokenScores(np.zeros(3), np.array([[0, 1], [1, 2], [2, 3]]), np.array([True, False, True]), np.arange(3))
    sides = [Side("good", pd.DataFrame({"good": [text]}), [tokens]) for text in (" ab", "xab")]
    assert [side.unk.tolist() for side in sides] == [[1], [2]]
