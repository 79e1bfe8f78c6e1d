"""`python -m eval`: score the finished runs of a study, or train and score the runs of a sweep (conf/eval.yaml)."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from eval.config import EvalConfig, of_each_benchmark
from pairscale.command.line import current
from pairscale.command.main import main
from pairscale.errors import InputError, RunError, StoreError
from pairscale.progress import shown
from train.config import run_id
from train.models.config import ImportedConfig, PretrainedConfig
from train.plan import Plan
from train.sweeps import check_whole_sweep, names_a_run, run_grid


def run(config: EvalConfig) -> None:
    """Train and score the run that the command line describes, or score the whole study if it names only a study."""
    from eval.run import score_study

    check_whole_sweep("eval", current(), config)
    configs = of_each_benchmark(config, current())
    if isinstance(config.model, PretrainedConfig):
        score_pretrained(configs)
    elif config.study and not names_a_run(current()):
        score_study(*configs)
    elif not config.dry_run:
        score_trained(configs)
    elif isinstance(config.model, ImportedConfig):
        _say_plan(configs, f"imported from {config.model.checkpoint}")
    else:
        plan(configs)


def score_pretrained(configs: Sequence[EvalConfig]) -> None:
    """Score every revision of a Hugging Face model. If one of several fails, the others are still scored.

    Raises RunError at the end if some revisions could not be scored.
    """
    from eval.run import add_pretrained, check_benchmark, score_or_report, score_run
    from train.models.pretrained import revisions

    config = configs[0]
    assert isinstance(config.model, PretrainedConfig)
    models, path = revisions(config.model), config.model.path
    for one in configs:
        check_benchmark(one)

    def score(each: Sequence[EvalConfig]) -> None:
        with shown(path, config.trainer.progress):
            run, scorer = add_pretrained(each[0])
            score_run(run, each, scorer)

    failed = 0
    for model in models:
        each = [replace(one, model=model) for one in configs]
        if config.dry_run:
            _say_plan(each, f"loaded from {path}")
        elif len(models) == 1:
            score(each)
        elif score_or_report(partial(score, each), f"{run_id(each[0])}: "):
            failed += 1
    if failed:
        raise RunError(
            f"model.path={path}: {failed} of {len(models)} revisions could not be scored. Fix the errors above."
        )


def score_trained(configs: Sequence[EvalConfig]) -> None:
    """Train a run or import a published checkpoint, unless that is already done, and score it."""
    from eval.live import beside_training
    from eval.run import check_benchmark, score_run

    config, beside = configs[0], ExitStack()

    def check() -> None:
        for one in configs:
            check_benchmark(one)
        if config.is_live:
            beside.enter_context(beside_training(configs))

    if isinstance(config.model, ImportedConfig):
        from train.import_checkpoint.run import import_run

        with shown(config.model.checkpoint, config.trainer.progress):
            check()
            score_run(import_run(config), configs)
    else:
        from train.run import corpus_of, run_title, say_summary, train_run

        with shown(run_title(config), config.trainer.progress):
            with beside:
                folder = train_run(config, corpus_of(config), check)
            say_summary(folder)
            score_run(folder, configs)


def _names(configs: Sequence[EvalConfig]) -> str:
    return ", ".join(config.benchmark.name for config in configs)


def _say_plan(configs: Sequence[EvalConfig], done: str) -> None:
    print(f"{run_id(configs[0])} would be {done} and scored on {_names(configs)}.")


def plan(configs: Sequence[EvalConfig]) -> None:
    """Add the estimates for a run to `planned`, which prints the totals after the last run of a sweep."""
    from eval.estimate import with_scoring
    from train.estimate import estimate

    run = estimate(configs[0])
    try:
        run = with_scoring(run, configs)
    except (InputError, StoreError) as error:  # training can be planned even if the benchmark can't be read
        planned.note(f"The estimate doesn't include scoring: {error}")
    planned.add(run)


planned = Plan()

if __name__ == "__main__":
    main("eval", run, planned.show, run_grid)
