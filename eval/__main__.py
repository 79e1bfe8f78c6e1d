"""The eval command: score the trained runs of a study, or train and score the runs of a sweep.

python -m eval study=NAME benchmark=blimp      every run of the study that is done and has no scores
python -m eval study=NAME benchmark=[blimp,climp]    each on both, with one load of its model
python -m eval study=NAME model=hf_causal model.path=gpt2      a model of the Hugging Face Hub, or a local folder
python -m eval study=NAME benchmark=cprag      a psycholinguistic diagnostic: cprag, role, neg
python -m eval study=NAME benchmark=syntaxgym  suites of SyntaxGym, whose formulas compare surprisals of regions
python -m eval study=NAME benchmark=ratings    sentences that people rated by degrees
python -m eval study=NAME model=imported model.checkpoint=FILE    a published checkpoint, which is imported first
python -m eval -m experiment=NAME              each run of the experiment's grid, which is trained first
python -m eval -m study=NAME corpus=toy model=lstm_tiny model.dropout=0,0.2    each run of these values, likewise
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hydra.core.hydra_config import HydraConfig

from eval.config import EvalConfig, PretrainedConfig
from eval.sweeps import names_a_run, of_each_benchmark
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

    configs = of_each_benchmark(config)
    for one in configs:
        check_methods(one)
    _SCORING.get(type(config.model), score_trained)(configs)


def score_pretrained(configs: Sequence[EvalConfig]) -> None:
    """Score each revision of a model of Hugging Face. If one of several is damaged, the others are scored all the same.

    Raises RunError at the end if some could not be scored.
    """
    from eval.run import add_pretrained, check_benchmark, score_on_all
    from eval.scorers.pretrained import revisions

    config = configs[0]
    assert isinstance(config.model, PretrainedConfig)
    models = revisions(config.model)
    if len(models) > 1 and not config.dry_run:
        for one in configs:
            check_benchmark(one)
    failed = 0
    for model in models:
        each = [replace(one, model=model) for one in configs]
        if config.dry_run:
            print(f"{run_id(each[0])}: would be loaded from {model.path} and scored on {_names(configs)}")
            continue
        try:
            with run_shown(model.path, config.trainer.progress) as alone:
                run, scorer = add_pretrained(each[0])
                score_on_all(run, each, scorer, alone)
        except (ConfigError, InputError, RunError, StoreError) as error:  # not WriteError: a full disk stops all
            if len(models) == 1:
                raise
            say(f"not scored: {run_id(each[0])}: {error}")
            failed += 1
    if failed:
        raise RunError(
            f"model.path={config.model.path}: {failed} of {len(models)} revisions could not be scored (see above)"
        )


def score_imported(configs: Sequence[EvalConfig]) -> None:
    """Import a published checkpoint unless that is done already, and score it."""
    from eval.run import score_on_all
    from train.import_checkpoint.run import import_run

    config = configs[0]
    assert isinstance(config.model, ImportedConfig)
    if config.dry_run:
        print(f"{run_id(config)}: would be imported from {config.model.checkpoint} and scored on {_names(configs)}")
    else:
        with run_shown(config.model.checkpoint, config.trainer.progress) as alone:
            score_on_all(import_run(config), configs, tables=alone)


def score_trained(configs: Sequence[EvalConfig]) -> None:
    """Train a run unless that is done already, and score it; score all runs of a study if no run is named."""
    from eval.run import check_benchmark, score_on_all, score_study

    def check() -> None:
        for one in configs:
            check_benchmark(one)

    config = configs[0]
    if config.study and not names_a_run(HydraConfig.get()):
        score_study(*configs)
    elif config.dry_run:
        plan(configs)
    else:
        from train.run import run_title, say_summary, train_run

        with run_shown(run_title(config), config.trainer.progress) as alone:
            folder = train_run(config, command=True, check=check)
            if alone:
                say_summary(folder)
            score_on_all(folder, configs, tables=alone)


_SCORING: dict[type[ModelConfig], Callable[[Sequence[EvalConfig]], None]] = {
    PretrainedConfig: score_pretrained,
    ImportedConfig: score_imported,
}  # others are trained here


def _names(configs: Sequence[EvalConfig]) -> str:
    return ", ".join(config.benchmark.name for config in configs)


def plan(configs: Sequence[EvalConfig]) -> None:
    """Add the estimates for a run to `planned`, which prints them after the last run of a sweep."""
    config = configs[0]
    planned.begin(f"reading {_names(configs)}, measuring each model's speed")
    from eval.estimate import estimate_scoring
    from train.estimate import estimate
    from train.plan import Planned

    training = estimate(config)
    try:
        scoring = [estimate_scoring(one, training.tokens_per_word, training.snapshots) for one in configs]
        seconds = sum(one.tokens for one in scoring) / training.speed.reading
        size, memory = sum(one.file_bytes for one in scoring), max(one.memory_bytes for one in scoring)
        planned.add(Planned(config, training, seconds, size, memory))
    except (InputError, StoreError) as error:  # training can be planned where the benchmark is not
        planned.add(Planned(config, training))
        planned.note(f"scoring is not counted: {error}")


planned = Plan()

if __name__ == "__main__":
    main("eval", run, planned.show)
