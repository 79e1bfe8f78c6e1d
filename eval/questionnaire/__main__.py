"""Run `python -m eval.questionnaire`, which writes forms with pairs, or measures how much people agree on them."""

import dataclasses

from eval.config import QuestionnaireCommand
from pairscale.command.main import main
from pairscale.command.schemas import listed
from pairscale.errors import ConfigError


def run(config: QuestionnaireCommand) -> None:
    """Write the forms or, if `people` is set, print how much people agree with the benchmark.

    Raises ConfigError if the benchmark has no pairs, and the same errors as `print_agreement` and `write_forms`.
    """
    # Imported here, because pandas and numpy would delay --help.
    from eval.benchmarks.load import benchmark_of
    from eval.questionnaire.answers import print_agreement
    from eval.questionnaire.forms import write_forms

    settings = config.questionnaire
    columns = config.benchmark.columns
    if not config.benchmark.has_pairs or columns.context or columns.options:
        raise ConfigError(
            f"benchmark={config.benchmark.name}: this benchmark has no minimal pairs of sentences. Use one that has."
        )
    benchmark = benchmark_of(config.benchmark, config.paths, dataclasses.asdict(config))
    if config.people:
        print_agreement(benchmark, listed(config.people), settings)
    else:
        write_forms(benchmark, settings, config.benchmark.language)


if __name__ == "__main__":
    main("questionnaire", run)
