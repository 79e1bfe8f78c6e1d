"""Results and samples of lm-evaluation-harness, in the forms of its versions 0.3 and 0.4."""

import json

import pytest

from analysis.study.judgements import score_labels
from analysis.study.sources.source import sources
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

DATE = "2026-01-02T03-04-05.678901"
PATTERN = r"results.pattern='(?P<model>pythia-[a-z0-9]+).*step(?P<size>\d+)'"


def read(path, *overrides):
    """Return the study of results, and its judgements."""
    (study,) = sources()["lm_eval"].collect(compose("analysis", ["source=lm_eval", f"path={path}", *overrides]))
    return study, sources()["lm_eval"].judge(study, score_labels(study)[0], "lp", "wrong")


def write_results(folder, revision, accuracies, *, samples=False, stamp=DATE, model="EleutherAI/pythia-70m", **more):
    """Write results of version 0.4 and, with `samples`, a line for each pair: (task, outcomes of its pairs)."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {
        task: {"alias": task, "acc,none": sum(of) / len(of), "acc_stderr,none": 0.1} for task, of in accuracies.items()
    }
    data = {
        "results": tasks | {"blimp": {"acc,none": 0.5}, "piqa": {"acc,none": 0.6}},
        "n-samples": {task: {"original": 1000, "effective": len(of)} for task, of in accuracies.items()},
        "config": {"model": "hf", "model_args": {"pretrained": model, "revision": revision}},
        "model_name": model,
    } | more  # fmt: skip
    (folder / f"results_{stamp}.json").write_text(json.dumps(data))
    for task, of in accuracies.items() if samples else ():
        lines = [
            {"doc_id": place, "doc": {"UID": task, "linguistics_term": "islands", "pairID": str(place)}, "acc": right}
            for place, right in enumerate(of)
        ]
        (folder / f"samples_{task}_{stamp}.jsonl").write_text("\n".join(map(json.dumps, lines)))


TASKS = {"blimp_adjunct_island": [1.0, 0.0, 1.0, 1.0], "blimp_wh_island": [0.0, 1.0]}


def test_results_of_version_4_are_accuracies_of_paradigms(tmp_path):
    for step in (1000, 2000):
        write_results(tmp_path / f"s{step}", f"step{step}", TASKS)
    study, judged = read(tmp_path, "results.unit=tokens", "results.scale=2097152")
    assert judged.runs["size"].tolist() == ["2.097B tokens", "4.194B tokens"]
    assert set(judged.runs["model"]) == {"pythia-70m"}
    assert judged.pairs.to_dict("list") == {
        "paradigm": ["adjunct_island", "wh_island"], "phenomenon": ["island_effects"] * 2, "n_pairs": [4, 2]
    }  # fmt: skip
    assert judged.outcome.tolist() == [[0.75, 0.5]] * 2
    assert (judged.over_training, judged.method) == (True, "acc")
    assert any("checkpoints of one training" in note for note in study.notes)


def test_samples_are_judgements_of_pairs(tmp_path):
    for step in (1000, 2000):
        write_results(tmp_path / f"s{step}", f"step{step}", TASKS, samples=True)
    _, judged = read(tmp_path, "results.unit=steps")
    assert not judged.of_paradigms
    assert judged.outcome.tolist() == [[1, 0, 1, 1, 0, 1]] * 2
    assert set(judged.pairs["phenomenon"]) == {"islands"}
    (tmp_path / "s2000" / f"samples_blimp_wh_island_{DATE}.jsonl").unlink()
    _, counted = read(tmp_path, "results.unit=steps")
    assert counted.pairs["n_pairs"].tolist() == [4, 2]
    assert counted.outcome.tolist() == [[0.75, 0.5]] * 2


def test_results_of_version_3_have_no_numbers_of_pairs(tmp_path):
    for step, accuracy in ((1000, 0.6), (2000, 0.7)):
        data = {"results": {"blimp_wh_island": {"acc": accuracy, "acc_stderr": 0.01}}, "config": {"model_args": {}}}
        (tmp_path / f"pythia-70m-0shot-global_step{step}_eval.json").write_text(json.dumps(data))
    again = {"results": {"blimp_wh_island": {"acc": 0.65}}, "config": {}}
    (tmp_path / "pythia-70m-0shot-global_step2000_eval_again.json").write_text(json.dumps(again))
    study, judged = read(tmp_path, PATTERN)
    assert judged.n_pairs is None
    assert judged.outcome[:, 0].tolist() == [0.6, 0.65]
    note = next(note for note in study.notes if note.startswith("Two results of pythia-70m at 2k: tasks of"))
    assert "global_step2000_eval_again.json has too are read from that, the later one by path, as no date tells" in note
    assert read(tmp_path, PATTERN, "results.n=1000")[1].n_pairs == 1000


def test_results_without_numbers_of_pairs_beside_others_are_refused(tmp_path):
    write_results(tmp_path / "new", "step1000", TASKS)
    write_results(tmp_path / "old", "step2000", TASKS, **{"n-samples": {}})
    with pytest.raises(
        InputError, match=r"old/results_.*: no number of pairs \(n\), but others .*new/results_.*results\.n="
    ):
        read(tmp_path, "results.unit=steps")
    assert read(tmp_path, "results.unit=steps", "results.n=4")[1].n_pairs is not None


def test_tasks_of_a_run_may_be_in_several_files(tmp_path):
    for step in (1000, 2000):
        for day, (task, of) in enumerate(TASKS.items(), start=1):
            write_results(tmp_path / f"s{step}", f"step{step}", {task: of}, stamp=f"2026-01-0{day}T03-04-05.6")
    study, judged = read(tmp_path, "results.unit=steps")
    assert judged.pairs["paradigm"].tolist() == ["adjunct_island", "wh_island"]
    assert judged.outcome.tolist() == [[0.75, 0.5]] * 2
    assert not any("Two results" in note for note in study.notes)
    (tmp_path / "s1000" / "all.json").write_text('{"results": {"blimp": {"acc": 0.9}}, "model_name": "x/pythia-70m"}')
    with pytest.raises(InputError, match="x/pythia-70m"):
        read(tmp_path, "results.size=1M")
    data = {"results": {"blimp": {"acc": 0.9}}, "config": {"model_args": "pretrained=EleutherAI/pythia-70m"}}
    (tmp_path / "s1000" / "all_step1000.json").write_text(json.dumps(data))
    (tmp_path / "s1000" / "all.json").unlink()
    assert (
        read(tmp_path, "results.unit=steps")[1].outcome.tolist() == [[0.75, 0.5]] * 2
    )  # the mean over all tasks is none of them


@pytest.mark.parametrize(("dated", "expected"), [({}, 0.25), ({"date": 1.0}, 0.75)])
def test_of_a_task_in_two_files_the_later_by_date_is_read(tmp_path, dated, expected):
    write_results(tmp_path / "a", "step1000", {"blimp_wh_island": [0, 0, 0, 1]}, stamp="2026-05-01T10-00-00", **dated)
    write_results(tmp_path / "b", "step1000", {"blimp_wh_island": [0, 1, 1, 1]}, stamp="2025-05-01T10-00-00.123456")
    study, judged = read(tmp_path, "results.unit=steps")
    assert judged.outcome.tolist() == [[expected]]
    older, later = ("b/results_2025", "a/results_2026") if not dated else ("a/results_2026", "b/results_2025")
    (note,) = (
        note for note in study.notes if note.startswith(f"Two results of pythia-70m at 1k steps: tasks of {older}")
    )
    assert later in note.partition(" that ")[2]
    assert note.endswith("the later one by date.")


def test_two_models_of_one_name_are_no_run(tmp_path):
    for seed in (1, 2):
        write_results(tmp_path / f"run-s{seed}", "step1000", TASKS, model=f"/scratch/run-s{seed}/final")
    message = r"run-s2/results.*: /scratch/run-s2/final would be one run with /scratch/run-s1/final .*results\.pattern="
    with pytest.raises(InputError, match=message):
        read(tmp_path, "results.unit=steps")
    _, judged = read(tmp_path, r"results.pattern='run-s(?P<seed>\d)/final.*step(?P<size>\d+)'")
    assert judged.runs["seed"].tolist() == [1, 2]


def test_models_of_one_name_at_different_sizes_are_one_curve_and_a_note(tmp_path):
    for number, owner in enumerate(["ours", "theirs"], 1):
        write_results(tmp_path / owner, f"step{number}000", TASKS, model=f"{owner}/gpt2")
    study, judged = read(tmp_path, "results.unit=steps")
    assert any(note.startswith("ours/gpt2, theirs/gpt2 are one curve, gpt2; results.pattern=") for note in study.notes)
    assert set(judged.runs["model"]) == {"gpt2"}
    study, judged = read(
        tmp_path, "results.unit=steps", r"results.pattern='(?P<model>ours|theirs)/gpt2.*step(?P<size>\d+)'"
    )
    assert not any("one curve" in note for note in study.notes)
    assert set(judged.runs["model"]) == {"ours", "theirs"}


def test_tasks_of_another_benchmark_are_no_paradigms(tmp_path):
    others = {"blimp_nl": [1.0], "blimp_nl__adverbs": [1.0], "blimp_nl__adverbs__place": [1.0, 0.0]}
    groups = {"blimp_nl": ["blimp_nl__adverbs"], "blimp_nl__adverbs": ["blimp_nl__adverbs__place"]}
    write_results(tmp_path / "m", "step1000", TASKS | others, group_subtasks=groups)
    assert read(tmp_path, "results.unit=steps")[1].pairs["paradigm"].tolist() == ["adjunct_island", "wh_island"]
    _, judged = read(tmp_path, "results.unit=steps", "results.benchmark=blimp_nl")
    assert judged.pairs["paradigm"].tolist() == ["adverbs__place"]
    assert judged.outcome.tolist() == [[0.5]]


def test_names_are_printable(tmp_path):
    write_results(tmp_path / "a", "main", TASKS, model="me/a\x1b[31m")
    with pytest.raises(InputError, match=r"blimp_adjunct_island: model is 'a\\x1b\[31m', must consist of printable"):
        read(tmp_path, "results.size=1M")


@pytest.mark.parametrize("unit", ["words", "sentences"])
def test_a_step_is_no_size_of_a_text(tmp_path, unit):
    write_results(tmp_path / "a", "step1000", TASKS)
    message = rf"1000 in its path or revision is a checkpoint's, but results\.unit={unit} is of training texts; give "
    with pytest.raises(ConfigError, match=message + r"results\.unit=tokens\|words_seen\|steps"):
        read(tmp_path, f"results.unit={unit}")
    for said in ("results.size=1k", r"results.pattern='step(?P<size>\d+)'"):
        assert read(tmp_path, f"results.unit={unit}", said)[1].runs["sample_words"].tolist() == [1000]


@pytest.mark.parametrize(
    ("revision", "size"),
    [
        ("step1000", 1000),
        ("step-1000-b", 1000),
        ("step1.5k", 1500),
        ("chck_10M", 10**7),
        ("chck_0.5M", 500_000),
        ("step2e3", 2000),
    ],
)
def test_a_revision_says_its_size(tmp_path, revision, size):
    write_results(tmp_path / "a", revision, TASKS)
    assert read(tmp_path, "results.unit=words_seen")[1].runs["sample_words"].tolist() == [size]


@pytest.mark.parametrize("model", ["EleutherAI/pythia-70m", "/models/step3/pythia-70m"])
def test_a_revision_says_more_than_a_folder(tmp_path, model):
    for step in (1000, 2000):
        write_results(tmp_path / "step2_eval" / str(step), f"step{step}", TASKS, model=model)
    path = tmp_path / "step2_eval"
    assert read(path, "results.unit=steps")[1].runs["sample_words"].tolist() == [1000, 2000]
    _, judged = read(path, "results.unit=steps", r"results.pattern='step(?P<size>\d+)'")  # the user's own, leftmost
    assert judged.runs["sample_words"].tolist() == [2]


def test_models_without_seeds_are_named(tmp_path):
    def notes(pattern=r"(?P<model>[ab])-\d+(-seed(?P<seed>\d+))?/"):
        study, _ = read(tmp_path, "results.unit=words", f"results.pattern='{pattern}.*step(?P<size>\\d+)'")
        return [note for note in study.notes if note.startswith("No seeds are given")]

    for number, name in enumerate(["a-1-seed42", "a-2-seed42"], 1):
        write_results(tmp_path / name, f"step{number}000", TASKS)
    assert notes() == []  # one seed is a seed
    assert notes(r"(?P<model>[ab])-")[0].startswith("No seeds are given: one run a size,")
    for number in (1, 2):
        write_results(tmp_path / f"b-{number}", f"step{number}000", TASKS)
    (note,) = notes()
    assert note.startswith("No seeds are given for b: one run a size there")


@pytest.mark.parametrize(("revision", "text"), [("chck_1B", "1B"), ("step10K", "10K"), ("chck_10m", "10m")])
def test_a_size_that_cannot_be_read_is_not_cut_short(tmp_path, revision, text):
    write_results(tmp_path / "a", revision, TASKS)
    with pytest.raises(InputError, match=rf"size is '{text}', must be a number such as 125k.* results\.sizes="):
        read(tmp_path, "results.unit=words_seen")
    _, judged = read(tmp_path, "results.unit=words_seen", f"results.sizes={{{text}:1000M}}")
    assert judged.runs["sample_words"].tolist() == [10**9]


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("{", [], r"x\.json: no JSON"),
        ("[1]", [], r"x\.json: holds a list, must hold an object"),
        ("{}", [], r"x\.json: no results of lm-evaluation-harness: it has no 'results'"),
        ('{"results": {"piqa": {"acc": 1}}}', [], r"no results of tasks blimp_\*, nor blimp; results\.benchmark=NAME"),
        ('{"results": {"blimp": {"acc": 1}}}', [], r"x\.json: no size in its path or model_args .*results\.size=SIZE"),
        ('{"results": {"blimp": {"f1,none": 1}}}', ["results.size=1M"], r"no acc \(results\.metric\); there are: f1"),
        ('{"results": {"blimp": {"acc": 2}}}', ["results.size=1M"], r"acc is 2, must be from 0 to 1"),
    ],
)
def test_other_files_are_told_in_one_line(tmp_path, text, overrides, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises((InputError, ConfigError), match=message):
        read(tmp_path / "x.json", *overrides)
