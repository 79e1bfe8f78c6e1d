"""The jobs of a sweep: folder and words of each, and none twice."""

from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from eval import sweeps
from pairscale.command.compose import compose, registered
from pairscale.command.launchers.jobs import distinct
from train.runs.folder import RunFolder


def test_each_job_of_a_sweep_has_the_folder_and_words_of_its_run(tmp_path):
    task = ["corpus=toy", "study=s", "model=lstm_tiny,ngram", "recipe.budget.epochs=2", "sample.size=1k,4k", "seed=1,2"]
    jobs = [["corpus=toy", "study=s", f"paths.runs={tmp_path}", "recipe.budget.epochs=2", f"model={model}",
             f"sample.size={size}", f"seed={seed}"]
            for model in ("lstm_tiny", "ngram") for size in ("1k", "4k") for seed in (1, 2)]  # fmt: skip
    with registered():
        loader = GlobalHydra.instance().config_loader()
        planned = sweeps.jobs(loader, loader.load_configuration("train", task, RunMode.MULTIRUN), jobs)
    assert [job.folder for job in planned] == [RunFolder.of(compose("train", words)).path for words in jobs]
    works = [job.work for job in planned]
    assert [work.words for work in works] == [2000, 2000, 8000, 8000, 1000, 1000, 4000, 4000]
    assert len({work.kind for work in works}) == 2


def test_a_run_that_a_sweep_names_twice_is_one_job(tmp_path):
    """Runs on the full text have no filter, whatever the axis of filters says; benchmarks are scored apart."""
    task = ["corpus=toy", "study=s", f"paths.runs={tmp_path}", "model=lstm_tiny", "sample.size=1k"]
    swept = [(action, name, benchmark) for action in ("none", "remove") for name in ("passive", "reflexive")
             for benchmark in ("toy", "blimp")]  # fmt: skip
    jobs = [[*task, f"ablate.action={action}", f"filter={name}", f"benchmark={benchmark}"]
            for action, name, benchmark in swept]  # fmt: skip
    with registered():
        loader = GlobalHydra.instance().config_loader()
        planned = distinct(sweeps.jobs(loader, loader.load_configuration("eval", task, RunMode.MULTIRUN), jobs))
    assert [job.index for job in planned] == list(range(6))
    assert [job.overrides[-3:] for job in planned] == [jobs[at][-3:] for at in (0, 1, 4, 5, 6, 7)]
    assert len({job.folder for job in planned}) == 3
