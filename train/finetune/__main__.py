"""`python -m train.finetune`: fine-tune the models of a study on a table (conf/finetune.yaml, conf/task/)."""

from pairscale.command.main import main
from train.config import FinetuneConfig


def run(config: FinetuneConfig) -> None:
    """Fine-tune the models of a study. Raises the errors of `finetune_study`."""
    from train.finetune.run import finetune_study

    finetune_study(config)


if __name__ == "__main__":
    main("finetune", run)
