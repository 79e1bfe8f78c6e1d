"""slurm/submit against simulated programs of SLURM that record their arguments."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pandas as pd
import pytest

from eval.config import EvalConfig
from eval.estimate import with_scoring
from eval.scores.files import score_path, write_scores
from eval.scores.schemas import SCORES
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support import ROOT
from tests.support.expected_runs import expected_runs
from tests.support.simulated_study import LP, about
from train.config import run_id
from train.estimate import estimate
from train.runs.folder import RunFolder

GRID = ["model=lstm_tiny", "sample.size=4k,8k", "seed=1"]
SBATCH = """#!/bin/sh
printf '%s\\n' "$@" "" >> {folder}/sbatch.calls
echo "$PAIRSCALE_SETUP" >> {folder}/setups
[ -e {folder}/refuse ] && {{ echo "sbatch: error: invalid partition" >&2; exit 1; }}
if [ -e {folder}/limit ]; then  # how many more jobs the user can have; each task of an array is one
  for one in "$@"; do case $one in --array=0-*) last=${{one#--array=0-}}; last=${{last%%%*}};; esac; done
  left=$(( $(cat {folder}/limit) - ${{last:-0}} - 1 ))
  [ $left -ge 0 ] || {{ echo "sbatch: error: QOSMaxSubmitJobPerUserLimit
sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or \
time limits)" >&2; exit 1; }}
  echo $left > {folder}/limit
fi
echo $(( $(grep -c '^$' {folder}/sbatch.calls) + 100 ))
"""
SQUEUE = """#!/bin/sh
printf '%s\\n' "$@" "" >> {folder}/squeue.calls
for one in "$@"; do case $one in --name=*) names=",${{one#--name=}},";; esac; done
while IFS="|" read -r job index name; do
  case $names in *",$name,"*) echo "$job|$index|$name";; esac
done < {folder}/queue
"""


@pytest.fixture(scope="module")
def submit():
    loader = SourceFileLoader("pairscale_submit", str(ROOT / "slurm" / "submit"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module.main


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """Return the folder of the programs, with their answers and their recorded calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    (folder / "queue").touch()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def arguments(tmp_path):
    return ["experiment=demo", *GRID, *(f"paths.{name}={tmp_path}/{name}" for name in ("runs", "store", "reports"))]


@pytest.fixture(scope="module")
def run_ids():
    """Return the ids of the two runs that `arguments` request."""
    return list(expected_runs("demo", GRID))


def calls(folder: Path, program: str = "sbatch") -> list[list[str]]:
    path = folder / f"{program}.calls"
    return [call.splitlines() for call in path.read_text().split("\n\n") if call] if path.exists() else []


def checked_tasks(array: list[str]) -> dict[str, EvalConfig]:
    """Return the configurations of an array's tasks by run id, which each line must name."""
    lines = [line.split("\t") for line in Path(array[-1]).read_text().splitlines()]
    configs = {run: compose("eval", shlex.split(line)) for run, line in lines}
    assert [run_id(config) for config in configs.values()] == [run for run, _ in lines]
    return configs


def write_run(tmp_path: Path, run: str, methods: tuple[str, ...] = ("lp", "mean_lp", "pen_lp")) -> None:
    """Write a finished run with score files of `methods`."""
    folder = RunFolder(tmp_path / "runs" / "demo" / run)
    folder.path.mkdir(parents=True)
    folder.update_manifest(status="done")
    folder.config.write_text("model: {name: lstm_demo}\n")
    scores = folder.scores("toy+seed-1+per_paradigm-100")
    scores.mkdir(parents=True)
    for method in methods:
        made = about("blimp", **LP | {"method": method}, parameters={"alpha": 0.8} if method == "pen_lp" else {})
        write_scores(score_path(scores, method), pd.DataFrame(columns=SCORES.names), made)


def test_a_sweep_is_one_array_followed_by_the_analysis(submit, queue, arguments, run_ids, tmp_path, capsys):
    submit([*arguments, "slurm.partition=gpu", "slurm.gpus_per_node=1", "slurm.account=lab"])
    array, analysis = calls(queue)
    assert {
        "--parsable", "--array=0-1%64", "--signal=USR2@180", "--requeue", "--partition=gpu", "--gpus-per-node=1",
        "--account=lab", "--mem=8G", "--time=1440", "--cpus-per-task=2",
    } <= set(array)  # fmt: skip
    assert array[-2] == str(ROOT / "slurm" / "run.sbatch")
    assert list(checked_tasks(array)) == run_ids
    assert {"--dependency=afterany:101", "--partition=gpu", "--account=lab"} <= set(analysis)
    assert not [option for option in analysis if "gpus" in option or "--array" in option or "--mem" in option]
    script = analysis.index(str(ROOT / "slurm" / "analysis.sbatch"))
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("runs", "store", "reports")]
    assert analysis[script + 1 :] == ["study=demo", *paths]
    assert "demo: 2 runs: 0 done and scored, 0 queued or running, 2 to submit" in capsys.readouterr().out
    assert not list((tmp_path / "runs" / "demo").glob("*/config.yaml"))


def test_jobs_read_their_setup_from_a_folder_with_a_comma(submit, queue, arguments, tmp_path):
    submit([*arguments, f"paths.runs='{tmp_path}/a, b'"])
    (setup,) = (tmp_path / "a, b" / "demo" / "slurm").glob("*.setup")
    assert (queue / "setups").read_text().splitlines() == [str(setup)] * 2
    assert all("--export=ALL" in call for call in calls(queue))


def test_any_sweep_is_submitted_as_eval_takes_it(submit, queue, tmp_path):
    paths = [f"paths.runs={tmp_path}/runs"]
    submit(["study=mine", "corpus=toy", "model=lstm_tiny,gru_tiny", "sample.size=4k", "seed=1,2", *paths])
    array, analysis = calls(queue)
    assert len(checked_tasks(array)) == 4
    assert analysis[-2:] == ["study=mine", *paths]


def test_large_samples_have_options_of_their_own(submit, queue, arguments):
    by_size = "{5k:{mem:32G},6k:{time:24:00:00,gpus_per_node:1,cpus_per_task:8}}"
    submit(
        [*arguments, "sample.size=4k,5k,8k", "slurm.mail-type=END", "slurm.requeue=false", f"slurm.by_size={by_size}"]
    )
    small, middle, large, analysis = calls(queue)
    assert [[one for one in array if re.match("--(mem|time|gpus|cpus)", one)] for array in (small, middle, large)] == [
        ["--cpus-per-task=2", "--mem=8G", "--time=1440"],
        ["--cpus-per-task=2", "--mem=32G", "--time=1440"],
        ["--gpus-per-node=1", "--cpus-per-task=8", "--mem=32G", "--time=24:00:00"],
    ]
    assert all("--mail-type=END" in array and "--requeue" not in array for array in (small, middle, large))
    assert len({array[-1] for array in (small, middle, large)}) == 3
    assert "--dependency=afterany:101:102:103" in analysis


def test_a_sweep_larger_than_an_array_is_several(submit, queue, arguments):
    scontrol = queue / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'MaxArraySize            = 2'\n")
    scontrol.chmod(0o755)
    submit([*arguments, "seed=1,2,3,4,5"])
    *arrays, _ = calls(queue)
    tasks = [Path(array[-1]).read_text().splitlines() for array in arrays]
    assert [len(one) for one in tasks] == [2, 2, 2, 2, 2]
    assert len({line for one in tasks for line in one}) == 10
    (queue / "queue").write_text(f"104|1|{Path(arrays[3][-1]).stem}\n")
    submit([*arguments, "seed=1,2,3,4,5"])
    again = [line for array in calls(queue)[6:-1] for line in Path(array[-1]).read_text().splitlines()]
    assert sorted(again) == sorted({line for one in tasks for line in one} - {tasks[3][1]})


def test_runs_of_like_size_share_tasks(submit, queue, arguments):
    by_size = "slurm.by_size={6k:{per_gpu:3,gpus-per-node:1}}"
    submit([*arguments, "sample.size=8k,4k,5k", "seed=1,2,3", "slurm.per_gpu=4", by_size])
    small, large, _ = calls(queue)
    assert (small[-1], large[-1]) == ("4", "3")
    assert "--array=0-1%64" in small
    assert {"--array=0-0%64", "--gpus-per-node=1"} <= set(large)
    configs = checked_tasks(small[:-1])
    assert [(config.sample.size, config.seed) for config in configs.values()] == [
        (size, seed) for size in ("4k", "5k") for seed in (1, 2, 3)
    ]
    (queue / "queue").write_text(f"101|1|{Path(small[-2]).stem}\n")  # the second task, with the last two runs
    submit([*arguments, "sample.size=4k,5k", "seed=1,2,3", "slurm.per_gpu=4"])
    *_, again, _ = calls(queue)
    assert list(checked_tasks(again[:-1])) == list(configs)[:4]


def test_each_run_is_in_one_task_of_several_arrays_and_is_not_submitted_again(submit, queue, arguments, capsys):
    scontrol = queue / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'MaxArraySize = 3'\n")
    scontrol.chmod(0o755)
    packed = [*arguments, "seed=1,2,3,4,5", "slurm.per_gpu=2"]
    for limit, numbers in ((2, [1, 1]), (100, [1, 1, 3])):  # of jobs that are allowed, and of tasks per array
        (queue / "limit").write_text(str(limit))
        submit(packed)
        # If a list of tasks exists, SLURM accepted the last call with it, and refused the calls before.
        accepted = {Path(call[-2]): (job, call) for job, call in enumerate(calls(queue), 101) if call[-1] == "2"}
        tasks: dict[str, list[str]] = {}  # runs by line of squeue; task i has the lines from 2i on, as in run.sbatch
        for path, (job, call) in accepted.items():
            if path.exists():
                assert f"--array=0-{numbers[0] - 1}%64" in call
                lines = path.read_text().splitlines()
                tasks |= {f"{job}|{i}|{path.stem}\n": lines[2 * i : 2 * i + 2] for i in range(numbers.pop(0))}
        assert not numbers
        (queue / "queue").write_text("".join(tasks))
    assert [len(runs) for runs in tasks.values()] == [2] * 5
    assert len({run for runs in tasks.values() for run in runs}) == 10

    analysis = calls(queue)[-1]
    name = next(word.removeprefix("--job-name=") for word in analysis if word.startswith("--job-name="))
    (queue / "queue").write_text("".join(tasks) + f"{100 + len(calls(queue))}|N/A|{name}\n")
    before = len(calls(queue))
    submit(packed)
    assert len(calls(queue)) == before
    assert f"Nothing to submit: the analysis is queued or running (job {100 + before})" in capsys.readouterr().out


def test_a_task_takes_only_as_many_runs_as_fit_into_its_memory(submit, queue, arguments, run_ids, capsys):
    arguments += ["scoring.snapshots=live", "trainer.snapshots=4", "dry_run_words_per_s=1000"]  # two processes
    config = compose("eval", [*arguments[:2], "sample.size=8k", *arguments[3:]])
    each = with_scoring(estimate(config), [config]).memory_bytes
    for memory, fitting in ((4 * each // 2**20, 3), (4 * each // 2**20 + 1, 4)):
        submit([*arguments, "seed=1,2,3", "slurm.per_gpu=4", f"slurm.mem={memory}M"])
        *_, array, _ = calls(queue)
        assert array[-1] == str(fitting)
        output = capsys.readouterr().out
        assert (f"a task with --mem={memory}M takes only 3 instead of 4 runs" in output) == (fitting == 3)


def test_runs_above_the_limit_of_jobs_are_submitted_later_by_the_same_command(submit, queue, arguments, capsys):
    more = [*arguments, "seed=1,2,3,4"]
    (queue / "limit").write_text("5")
    submit(more)
    assert "3 runs and the analysis are not submitted yet" in (output := capsys.readouterr().out)
    assert "(QOSMaxSubmitJobPerUserLimit). Run the same command again" in output
    tasks = sorted((queue.parent / "runs" / "demo" / "slurm").glob("*.tasks"), key=lambda one: len(one.name))
    assert [len(one.read_text().splitlines()) for one in tasks] == [4, 1]
    first = [f"10{number}|{index}|{tasks[number].stem}" for number, index in ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0))]
    (queue / "queue").write_text("\n".join(first) + "\n")
    (queue / "limit").write_text("3")
    submit(more)  # accepts all runs, but not the analysis
    assert "5 queued or running (job 100, 101), 3 to submit" in (output := capsys.readouterr().out)
    assert "\nthe analysis is not submitted yet" in output.replace("The", "the")
    rest = set((queue.parent / "runs" / "demo" / "slurm").glob("*.tasks")) - set(tasks)
    lines = [line for one in (*tasks, *rest) for line in one.read_text().splitlines()]
    assert len(set(lines)) == len(lines) == 8


def test_several_benchmarks_are_scores_of_the_same_runs(submit, queue, tmp_path):
    words = ["study=mine", "corpus=toy", *GRID, f"paths.runs={tmp_path}/runs"]
    submit([*words, "benchmark=toy,generated"])
    array, _ = calls(queue)
    assert [config.benchmarks for config in checked_tasks(array).values()] == [["toy", "generated"]] * 2


def test_runs_that_are_queued_for_another_benchmark_are_told_and_wait(submit, queue, tmp_path, capsys):
    words = ["study=mine", "corpus=toy", *GRID, "seed=1,2", f"paths.runs={tmp_path}/runs"]
    submit(words)  # on the default benchmark
    array, _ = calls(queue)
    stem = Path(array[-1]).stem
    (queue / "queue").write_text(f"101|0|{stem}\n101|1|{stem}\n101|3|{stem}\n102|N/A|{stem}-analysis\n")
    told = "Queued for other benchmarks: 3 runs (job 101). Submit again when they have ended."
    for benchmark, counts in (("blimp", "3 queued or running (job 101), 1"), ("blimp,toy", "0 queued or running, 1")):
        capsys.readouterr()
        submit([*words, f"benchmark={benchmark}"])
        output = capsys.readouterr().out
        assert f"mine: 4 runs: 0 done and scored, {counts} to submit" in output
        assert (told in output) == (benchmark != "blimp")
        *_, again, analysis = calls(queue)
        assert list(checked_tasks(again)) == list(checked_tasks(array))[2:3]
        assert [one for one in analysis if one.startswith("--dependency=afterany:101:")]


def test_queued_and_finished_runs_are_not_submitted_again(submit, queue, arguments, run_ids, tmp_path, capsys):
    submit(arguments)
    first, second = run_ids
    name = Path(calls(queue)[0][-1]).stem
    (queue / "queue").write_text(f"101|1|{name}\n102|N/A|{name}-analysis\n")
    submit(arguments)  # the first run's task ended, and the run is not done
    assert "0 done and scored, 1 queued or running (job 101), 1 to submit" in capsys.readouterr().out
    *_, array, analysis = calls(queue)
    assert [line.partition("\t")[0] for line in Path(array[-1]).read_text().splitlines()] == [first]
    assert "--dependency=afterany:101:103" in analysis
    query = calls(queue, "squeue")[-1]
    assert f"--name={name},{name}-analysis" in query

    write_run(tmp_path, first)
    before = len(calls(queue))
    submit(arguments)
    assert len(calls(queue)) == before
    output = capsys.readouterr().out
    assert "1 done and scored, 1 queued or running (job 101), 0 to submit" in output
    assert "Nothing to submit: the analysis is queued or running (job 102)" in output

    write_run(tmp_path, second)
    (queue / "queue").write_text("")
    submit(arguments)
    assert "2 done and scored, 0 queued or running, 0 to submit" in capsys.readouterr().out
    assert len(calls(queue)) == before + 1
    *_, analysis = calls(queue)
    assert not [option for option in analysis if option.startswith(("--dependency", "--array"))]

    name = next(option.removeprefix("--job-name=") for option in analysis if option.startswith("--job-name="))
    (queue / "queue").write_text(f"{100 + before + 1}|N/A|{name}\n")
    submit(arguments)
    assert len(calls(queue)) == before + 1


@pytest.mark.parametrize(
    ("more", "to_submit"),
    [([], 1), (["method=[lp,one_prefix]"], 2), (["policy.context=eos"], 2), (["recipe.lr=0.1"], 2)],
)
def test_a_run_without_the_requested_scores_is_submitted(submit, queue, arguments, run_ids, tmp_path, more, to_submit):
    write_run(tmp_path, run_ids[0])
    submit([*arguments, *more])
    assert f"--array=0-{to_submit - 1}%64" in calls(queue)[0]


def test_a_run_without_scores_of_its_snapshots_is_submitted(submit, queue, arguments, run_ids, tmp_path, capsys):
    for run in run_ids:
        write_run(tmp_path, run)
    run = RunFolder(tmp_path / "runs" / "demo" / run_ids[0])
    scores = run.scores("toy+seed-1+per_paradigm-100")
    (run.path / "snapshots").mkdir()
    for step in (3, 6):
        run.snapshot(step, "0" * 64).touch()
    for more, done in (([], 2), (["scoring.snapshots=true"], 1)):
        submit([*arguments, *more])
        assert f"{done} done and scored, 0 queued or running, {2 - done} to submit" in capsys.readouterr().out
    for step, done in ((3, 1), (6, 2)):
        for method in ("lp", "mean_lp", "pen_lp"):
            shutil.copy(score_path(scores, method), score_path(scores, method, step))
        submit([*arguments, "scoring.snapshots=live"])
        assert f"{done} done and scored, 0 queued or running, {2 - done} to submit" in capsys.readouterr().out


@pytest.fixture
def mine(tmp_path):
    """Return a folder with a model and an experiment of the user."""
    folder = tmp_path / 'my "own"'
    for group in ("model", "experiment"):
        (folder / group).mkdir(parents=True)
    text = (ROOT / "conf" / "model" / "lstm_tiny.yaml").read_text().replace("name: lstm_tiny", "name: own")
    (folder / "model" / "own.yaml").write_text(text)
    (folder / "experiment" / "of_mine.yaml").write_text((ROOT / "conf" / "experiment" / "demo.yaml").read_text())
    return folder


@pytest.mark.slow
def test_a_task_with_a_model_and_an_experiment_of_the_user_is_a_command_that_runs(submit, queue, arguments, mine):
    own = ["model=own", "recipe=lstm_tiny", "--config-dir", str(mine)]
    submit(["experiment=of_mine", *(one for one in arguments[1:] if one != "model=lstm_tiny"), *own])
    array, _ = calls(queue)
    assert [config.model.name for config in checked_tasks(array).values()] == ["own", "own"]
    tasks = Path(array[-1])
    words = tasks.read_text().splitlines()[0].split("\t")[1]
    script = f'. {tasks.with_suffix(".setup")}; exec "${{PYTHON[@]}}" -m pairscale eval {words} dry_run=true'
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("true", ["true", "True"])
def test_a_dry_run_only_prints_the_commands(submit, queue, arguments, tmp_path, capsys, true):
    submit([*arguments, f"dry_run={true}", "slurm.constraint=a100"])
    lines = capsys.readouterr().out.splitlines()
    array, analysis = [shlex.split(line) for line in lines if " sbatch " in line]
    assert lines[-1] == "Dry run: nothing was submitted, and the .tasks and .setup files were not written."
    assert "--constraint=a100" in array
    assert "--dependency=afterany:ARRAY" in analysis
    assert not calls(queue)
    assert not (tmp_path / "runs").exists()


def test_runs_without_an_ablation_are_submitted_once_for_all_filters(submit, queue, tmp_path):
    axes = ["ablate.action=none,remove", "filter=passive,reflexive", "model=lstm_tiny", "sample.size=4k", "seed=1,2"]
    submit(["experiment=demo", *axes, f"paths.runs={tmp_path}"])
    array, _ = calls(queue)
    tasks = [line.split("\t") for line in Path(array[-1]).read_text().splitlines()]
    points = [dict(word.split("=", 1) for word in shlex.split(line)) for _, line in tasks]
    ablated = [(point["seed"], point["filter"]) for point in points if point["ablate.action"] == "remove"]
    assert sorted(ablated) == [("1", "passive"), ("1", "reflexive"), ("2", "passive"), ("2", "reflexive")]
    assert sorted(point["seed"] for point in points if point["ablate.action"] == "none") == ["1", "2"]
    assert len({run for run, _ in tasks}) == 6


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ([], "experiment=NAME"),
        (["study=mine", "benchmark=toy"], "experiment=NAME"),
        (["corpus=toy", "model=lstm_tiny"], "study=NAME"),
        (["experiment=demo", "experiment=blimp_small"], "experiment=blimp_small"),
        (["experiment=demo", "slurm.at_a_time=many"], "slurm.at_a_time=many"),
        (["experiment=demo", "slurm.per_gpu=0"], "slurm.per_gpu=0"),
        (["experiment=demo", "slurm.by_size={8M:{per_gpu:all}}"], "slurm.per_gpu=all"),
        (["experiment=demo", "slurm.by_size={big:{mem:32G}}"], "slurm.by_size=big"),
        (
            ["experiment=demo", "slurm.by_size={8M:{at_a_time:2}}"],
            "at_a_time can't differ by size. Set slurm.at_a_time",
        ),
        (["experiment=demo", "slurm.by_size={8M:{setup:[a]}}"], "setup can't differ by size. Set slurm.setup"),
        (["experiment=climp_sizes_local"], "corpus.path"),
        (["experiment=demo", "--config-dir", "nowhere"], "--config-dir nowhere"),
        (["experiment=demo", "analysis.margin=-1", "dry_run=true"], "analysis.margin=-1"),
        (["experiment=demo", "ties=wrong,half"], "ties=wrong,half"),
        (["experiment=demo", "dry_run=yes"], "dry_run=yes: this value must be true or false."),
        (["experiment=demo", "dry_run=true,false"], "dry_run=True,False"),
    ],
)
def test_wrong_arguments_are_an_error(submit, queue, wrong, named):
    with pytest.raises(ConfigError, match=re.escape(named)):
        submit(wrong)
    assert not calls(queue)


def test_errors_of_slurm_and_missing_programs_are_told(submit, queue, arguments, monkeypatch, tmp_path):
    (queue / "refuse").touch()
    with pytest.raises(ConfigError, match=r"sbatch: error: invalid partition$"):
        submit(arguments)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"sbatch and squeue .* the PATH"):
        submit(arguments)


def test_another_python_is_told_about_the_environment():
    command = [sys.executable, "-S", ROOT / "slurm" / "submit", "--help"]  # without installed packages
    done = subprocess.run(command, capture_output=True, text=True, env={})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f". {ROOT}/.venv/bin/activate" in done.stderr
