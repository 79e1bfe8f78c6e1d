"""`python -m eval`: score the trained runs of a study, or train and score what an experiment asks for.

python -m eval study=NAME benchmark=blimp      every run of the study that is done and lacks scores
python -m eval study=NAME model=hf_causal model.path=gpt2      a model of the Hugging Face hub, or a local folder
python -m eval study=NAME benchmark=cprag      a psycholinguistic diagnostic: cprag, role, neg
python -m eval study=NAME model=imported model.checkpoint=FILE  a published checkpoint, imported unless it is
python -m eval -m study=NAME corpus=toy model=lstm_tiny model.dropout=0,0.2    runs by their values: the same
python -m eval -m experiment=NAME              each run of the experiment's grid: train it unless done, then score it
"""

import functools
from dataclasses import replace

from hydra.core.hydra_config import HydraConfig

from eval.config import EvalConfig, PretrainedConfig
from eval.diagnostics.config import DiagnosticConfig
from eval.sweeps import names_a_run
from pairscale.command.main import main
from pairscale.errors import InputError, StoreError
from train.models.config import ImportedConfig
from train.plan import Plan
from train.runs.folder import run_id


def run(config: EvalConfig) -> None:
    """Train and score the run that the command line describes; score a whole study where it names nothing else."""
    from eval.methods.judging import check_templates
    from eval.run import add_pretrained, check_benchmark, score_run, score_study

    if not isinstance(config.benchmark, DiagnosticConfig):  # which has no methods
        check_templates(config)
    if isinstance(config.model, PretrainedConfig):
        from eval.scorers.pretrained import revisions

        for model in revisions(config.model):
            one = replace(config, model=model)
            if config.dry_run:
                print(f"{run_id(one)}: would be loaded from {model.path} and scored on {config.benchmark.name}")
            else:
                score_run(*add_pretrained(one))
    elif isinstance(config.model, ImportedConfig) and config.dry_run:
        source = config.model.checkpoint
        print(f"{run_id(config)}: would be imported from {source} and scored on {config.benchmark.name}")
    elif isinstance(config.model, ImportedConfig):
        from train.import_checkpoint.run import import_run

        score_run(import_run(config), config)
    elif config.study and not names_a_run(HydraConfig.get()):
        score_study(config)
    elif config.dry_run:
        plan(config)
    else:
        from train.run import train_run

        score_run(train_run(config, command=True, check=functools.partial(check_benchmark, config)), config)


def plan(config: EvalConfig) -> None:
    """Note what the run that `config` describes would take; `planned` prints it when all of a sweep are noted."""
    planned.begin(f"reading {config.benchmark.name}, measuring each model's speed")
    from eval.estimate import score_bytes, scoring_memory, scoring_tokens
    from train.estimate import estimate
    from train.plan import Planned

    expected = estimate(config)
    try:
        tokens = scoring_tokens(config, expected.tokens_per_word, expected.snapshots)
        written = score_bytes(config, expected.snapshots)
        memory = scoring_memory(config) if tokens else 0
        planned.add(Planned(config, expected, tokens / expected.speed.reading, written, memory))
    except (InputError, StoreError) as error:  # training can be planned where the benchmark is not
        planned.add(Planned(config, expected))
        planned.note(f"scoring is not counted: {error}")


planned = Plan()

if __name__ == "__main__":
    main("eval", run, planned.show)
