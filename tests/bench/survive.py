"""A study of 24 runs on the emulated cluster, five of them killed in five ways, completed by a second submission.

    python tests/bench/survive.py [FOLDER]        as root, after `make system`; about ten minutes on two cores

Prints each step, and fails unless scores, curves and tables equal those of the same study undisturbed.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.expected_runs import expected_runs
from tests.support.slurm_cluster import ROOT, SMALL_JOBS, TOY, Cluster, paths, wait_until
from train.runs.folder import RunFolder

GRID = ["model=lstm_tiny,txl_tiny", "sample.size=4k,8k,16k", "seed=1,2,3,4"]
TIMES = ["words/s", "seconds"]
SCORES = "toy+seed-1+per_paradigm-3"


def main(folder: Path) -> None:
    arguments = [*(override for override in TOY if override.partition("=")[0] not in ("model", "sample.size")), *GRID]
    runs = list(expected_runs("demo", arguments[1:]))
    print(f"{len(runs)} runs in {folder}")
    disturbed, undisturbed, hold = folder / "disturbed", folder / "alone", folder / "hold"
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder / "cluster")
    cluster.up(NODES="5")
    try:
        with ThreadPoolExecutor() as pool:
            quiet = pool.submit(cluster.run, sys.executable, "-m", "eval", "-m", *arguments, *paths(undisturbed))
            hold.touch()
            paused_python = f"PYTHON=({sys.executable} {ROOT / 'tests' / 'support' / 'held_python.py'} {hold})"
            options = [*arguments, *paths(disturbed), *SMALL_JOBS, "slurm.signal=USR2@55"]
            print(cluster.submit(*options, f'slurm.setup=["{paused_python}"]'))
            array = min((job.partition("_")[0] for job in cluster.jobs()), key=int)
            ways = dict(enumerate([cluster.preempt, cluster.limit, cluster.fail_node, cluster.cancel, cluster.kill]))
            study = disturbed / "runs" / "demo"
            started = [study / run for run in runs[: len(ways)]]
            wait_until(lambda: all(list(run.glob("checkpoints/*.ckpt")) for run in started), "checkpoints", 600)
            for index, way in ways.items():
                print(f"{way.__name__}: {array}_{index} {runs[index]}", flush=True)
                way(f"{array}_{index}")
            ended = ("FAILED", "CANCELLED")
            wait_until(lambda: all(cluster.jobs()[f"{array}_{n}"]["state"] in ended for n in (3, 4)), "two to end", 600)
            requeued = [f"{array}_{n}" for n in (0, 1, 2)]
            wait_until(
                lambda: all(cluster.jobs()[task]["restarts"] != "0" for task in requeued), "three to be requeued", 600
            )
            hold.unlink()
            cluster.run("scontrol", "update", f"JobId={array}_1", "TimeLimit=30")
            wait_until(lambda: not cluster.live(), "the first submission", 1800)
            print({task: (job["state"], f"restarts {job['restarts']}") for task, job in cluster.jobs().items()})
            print(cluster.submit(*options), flush=True)
            wait_until(lambda: not cluster.live(), "the second submission", 1800)
            print(cluster.submit(*options, "dry_run=true").splitlines()[0])
            quiet.result()
        cluster.run(sys.executable, "-m", "analysis", "study=demo", *paths(undisturbed))
    finally:
        cluster.down()
    compare(disturbed, undisturbed, runs)


def compare(disturbed: Path, undisturbed: Path, runs: list[str]) -> None:
    attempts = {}
    for run in runs:
        folders = [RunFolder(study / "runs" / "demo" / run) for study in (disturbed, undisturbed)]
        assert all(folder.done for folder in folders), run
        assert folders[0].model.weights.read_bytes() == folders[1].model.weights.read_bytes(), f"{run}: other weights"
        assert folders[0].metrics.read_bytes() == folders[1].metrics.read_bytes(), f"{run}: other metrics"
        for method in ("lp", "mean_lp", "pen_lp"):
            tables = [pd.read_parquet(folder.scores(SCORES) / f"{method}.parquet") for folder in folders]
            pd.testing.assert_frame_equal(*tables, check_exact=True)
        attempts[run] = folders[0].read_manifest()["attempts"]
    print(f"{len(runs)} runs: weights, metrics and scores are equal; more than one attempt:")
    print({run: count for run, count in attempts.items() if count > 1})
    reports = [study / "reports" / "demo" for study in (disturbed, undisturbed)]
    for path in sorted((reports[1] / "tables").glob("*.csv")):
        tables = [pd.read_csv(report / "tables" / path.name).drop(columns=TIMES, errors="ignore") for report in reports]
        pd.testing.assert_frame_equal(*tables, check_exact=True)
        print(f"equal: {path.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="pairscale-survive-")))
