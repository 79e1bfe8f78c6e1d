"""`python -m eval.questionnaire`: pairs of a benchmark as pages for people, and the agreement of their answers."""

import dataclasses

from eval.config import QuestionnaireCommand
from pairscale.command.main import main
from pairscale.command.schemas import listed
from pairscale.errors import ConfigError


def run(config: QuestionnaireCommand) -> None:
    """Write the forms, or with `people` print how far the people agree who answered them.

    Raises ConfigError for a benchmark without pairs, and what the functions raise that it calls.
    """
    # Imported here, so that --help starts at once.
    from eval.benchmarks.load import benchmark_of
    from eval.questionnaire.answers import print_agreement
    from eval.questionnaire.forms import write_forms

    settings = config.questionnaire
    if not config.benchmark.has_pairs:
        raise ConfigError(f"benchmark={config.benchmark.name}: a diagnostic has no pairs for people to choose from.")
    benchmark = benchmark_of(config.benchmark, config.paths, dataclasses.asdict(config))
    if config.people:
        print_agreement(benchmark, listed(config.people), settings)
    else:
        write_forms(benchmark, settings, config.benchmark.language)


if __name__ == "__main__":
    main("questionnaire", run)
