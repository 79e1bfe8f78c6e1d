"""`python -m eval.questionnaire`: pairs of a benchmark as pages for people, and the agreement of their answers."""

from eval.config import QuestionnaireCommand
from pairscale.command.main import main


def run(config: QuestionnaireCommand) -> None:
    """Write the forms, or with `people` print how far the people agree; raises as `eval.questionnaire.run.run`."""
    from eval.questionnaire.run import run  # here, so that --help starts at once

    run(config)


if __name__ == "__main__":
    main("questionnaire", run)
