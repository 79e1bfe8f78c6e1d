"""`python -m eval.questionnaire`: pairs of a benchmark as pages for people, and what people chose."""

from eval.config import EvalConfig
from pairscale.command.main import main


def run(config: EvalConfig) -> None:
    """Write the forms, or with `people` say how far the people agree who answered them."""
    from eval.questionnaire.run import say_agreement, write_forms  # here, so that --help starts at once

    if config.people:
        say_agreement(config)
    else:
        write_forms(config)


if __name__ == "__main__":
    main("questionnaire", run)
