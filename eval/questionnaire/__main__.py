"""The command `python -m eval.questionnaire`: write pages with pairs for people, or measure how far people agree."""

import dataclasses

from eval.config import QuestionnaireCommand
from pairscale.command.main import main
from pairscale.command.schemas import listed
from pairscale.errors import ConfigError


def run(config: QuestionnaireCommand) -> None:
    """Write the forms, or with `people`, print how far the people who answered them agree.

    Raises ConfigError for a benchmark without pairs, and the errors of `print_agreement` and `write_forms`.
    """
    # Imported here, so that --help starts at once.
    from eval.benchmarks.load import benchmark_of
    from eval.questionnaire.answers import print_agreement
    from eval.questionnaire.forms import write_forms

    settings = config.questionnaire
    if not config.benchmark.has_pairs:
        raise ConfigError(
            f"benchmark={config.benchmark.name}: this benchmark has no pairs that people could choose from. Use a "
            "benchmark of minimal pairs."
        )
    benchmark = benchmark_of(config.benchmark, config.paths, dataclasses.asdict(config))
    if config.people:
        print_agreement(benchmark, listed(config.people), settings)
    else:
        write_forms(benchmark, settings, config.benchmark.language)


if __name__ == "__main__":
    main("questionnaire", run)
