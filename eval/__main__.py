"""The eval command: score the trained runs of a study, or train and score the runs of a sweep.

python -m eval study=NAME benchmark=blimp      every run of the study that is done and has no scores
python -m eval study=NAME model=hf_causal model.path=gpt2      a model of the Hugging Face Hub, or a local folder
python -m eval study=NAME benchmark=cprag      a psycholinguistic diagnostic: cprag, role, neg
python -m eval study=NAME benchmark=syntaxgym  suites of SyntaxGym, whose formulas compare surprisals of regions
python -m eval study=NAME benchmark=ratings    sentences that people rated by degrees
python -m eval study=NAME model=imported model.checkpoint=FILE    a published checkpoint, which is imported first
python -m eval -m experiment=NAME              each run of the experiment's grid, which is trained first
python -m eval -m study=NAME corpus=toy model=lstm_tiny model.dropout=0,0.2    each run of these values, likewise
"""

import functools
from collections.abc import Callable
from dataclasses import replace

from hydra.core.hydra_config import HydraConfig

from eval.config import EvalConfig, PretrainedConfig
from eval.sweeps import names_a_run
from pairscale.command.main import main
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError, StoreError
from pairscale.progress import run_shown
from train.models.config import ImportedConfig, ModelConfig
from train.plan import Plan
from train.runs.identity import run_id


def run(config: EvalConfig) -> None:
    """Train and score the run that the command line describes; score a whole study if it names nothing else."""
    from eval.run import check_methods

    check_methods(config)
    _SCORING.get(type(config.model), score_trained)(config)


def score_pretrained(config: EvalConfig) -> None:
    """Score each revision of a model of Hugging Face. If one of several is damaged, the others are scored all the same.

    Raises RunError at the end if some could not be scored.
    """
    from eval.run import add_pretrained, check_benchmark, score_run
    from eval.scorers.pretrained import revisions

    assert isinstance(config.model, PretrainedConfig)
    models = revisions(config.model)
    if len(models) > 1 and not config.dry_run:
        check_benchmark(config)
    failed = 0
    for model in models:
        one = replace(config, model=model)
        if config.dry_run:
            print(f"{run_id(one)}: would be loaded from {model.path} and scored on {config.benchmark.name}")
            continue
        try:
            with run_shown(model.path, config.trainer.progress) as alone:
                score_run(*add_pretrained(one), tables=alone)
        except (ConfigError, InputError, RunError, StoreError) as error:  # not WriteError: a full disk stops all
            if len(models) == 1:
                raise
            say(f"not scored: {run_id(one)}: {error}")
            failed += 1
    if failed:
        raise RunError(
            f"model.path={config.model.path}: {failed} of {len(models)} revisions could not be scored (see above)"
        )


def score_imported(config: EvalConfig) -> None:
    """Import a published checkpoint unless that is done already, and score it."""
    from eval.run import score_run
    from train.import_checkpoint.run import import_run

    assert isinstance(config.model, ImportedConfig)
    if config.dry_run:
        print(
            f"{run_id(config)}: would be imported from {config.model.checkpoint} and scored on {config.benchmark.name}"
        )
    else:
        with run_shown(config.model.checkpoint, config.trainer.progress) as alone:
            score_run(import_run(config), config, tables=alone)


def score_trained(config: EvalConfig) -> None:
    """Train a run unless that is done already, and score it; score all runs of a study if no run is named."""
    from eval.run import check_benchmark, score_run, score_study

    if config.study and not names_a_run(HydraConfig.get()):
        score_study(config)
    elif config.dry_run:
        plan(config)
    else:
        from train.run import run_title, say_summary, train_run

        with run_shown(run_title(config), config.trainer.progress) as alone:
            folder = train_run(config, command=True, check=functools.partial(check_benchmark, config))
            if alone:
                say_summary(folder)
            score_run(folder, config, tables=alone)


_SCORING: dict[type[ModelConfig], Callable[[EvalConfig], None]] = {
    PretrainedConfig: score_pretrained,
    ImportedConfig: score_imported,
}  # others are trained here


def plan(config: EvalConfig) -> None:
    """Add the estimates for the run of `config` to `planned`, which prints them after the last run of a sweep."""
    planned.begin(f"reading {config.benchmark.name}, measuring each model's speed")
    from eval.estimate import estimate_scoring
    from train.estimate import estimate
    from train.plan import Planned

    training = estimate(config)
    try:
        scoring = estimate_scoring(config, training.tokens_per_word, training.snapshots)
        seconds = scoring.tokens / training.speed.reading
        planned.add(Planned(config, training, seconds, scoring.file_bytes, scoring.memory_bytes))
    except (InputError, StoreError) as error:  # training can be planned where the benchmark is not
        planned.add(Planned(config, training))
        planned.note(f"scoring is not counted: {error}")


planned = Plan()

if __name__ == "__main__":
    main("eval", run, planned.show)
