"""spaCy's own training, with the settings that `spacy init config --optimize efficiency` recommends for a CPU.

Four are ours: a document is a sentence, as in corpora.annotate; the learning rate falls to 0; LAS counts as much as all
else where the best weights are chosen; a relation is learned from ten examples on (spaCy: thirty).
"""

import io
import logging
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from corpora.train_parser.treebank import Treebank
from pairscale.errors import ConfigError
from pairscale.progress import Activity, working

COMPONENTS = ["tagger", "morphologizer", "trainable_lemmatizer", "parser"]
RATE = 0.001  # highest learning rate
WARM_UP = 0.05  # share of the steps in which it rises
EVALUATIONS = 12  # on the dev split
LEAST_EXAMPLES = 10  # of a relation, in a direction, that the parser learns
LOGGER = "pairscale.progress.v1"
WEIGHTS = {"tag_acc": 0.1, "pos_acc": 0.15, "morph_acc": 0.1, "lemma_acc": 0.15, "dep_las": 0.5, "dep_uas": 0.0}


def train(treebank: Treebank, language: str, steps: int, seed: int, folder: Path) -> Path:
    """Train a pipeline in `folder` and return its own folder there. Raises ConfigError for an unknown language."""
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import DIR_MODEL_BEST
    from spacy.training.loop import train as train_pipeline
    from spacy.util import registry

    for split in ("train", "dev"):
        _convert(treebank, split, folder)
    config = pipeline_config(language, steps, seed, folder)
    progress = _Progress(f"training {treebank.name}", config)
    registry.loggers(LOGGER, func=progress.logger)
    logging.getLogger("spacy").setLevel(logging.WARNING)  # progress says the rest
    with working("reading words, tags and relations"):
        nlp = init_nlp(config)
    with progress.activity:
        train_pipeline(nlp, folder, stdout=io.StringIO(), stderr=io.StringIO())
    return folder / DIR_MODEL_BEST


def pipeline_config(language: str, steps: int, seed: int, folder: Path) -> Any:
    """Return spaCy's configuration of pipeline and training. Raises ConfigError for an unknown language."""
    from spacy.cli.init_config import init_config
    from spacy.util import get_lang_class

    try:
        get_lang_class(language)
    except ImportError:
        raise ConfigError(f"language={language}: spaCy has no tokenizer for it; language=xx has one for any") from None
    config = init_config(lang=language, pipeline=COMPONENTS, optimize="efficiency")
    config["paths"] |= {split: str(folder / f"{split}.spacy") for split in ("train", "dev")}
    config["system"]["seed"] = seed
    config["components"]["parser"]["min_action_freq"] = LEAST_EXAMPLES
    training = config["training"]
    training |= {"max_steps": steps, "patience": 0, "eval_frequency": max(1, steps // EVALUATIONS)}
    training["optimizer"]["learn_rate"] = {
        "@schedules": "warmup_linear.v1",
        "initial_rate": RATE,
        "warmup_steps": max(1, round(WARM_UP * steps)),
        "total_steps": steps + 1,  # the last step has a rate, too
    }
    training["score_weights"] |= WEIGHTS
    training["logger"] = {"@loggers": LOGGER}
    return config


def _convert(treebank: Treebank, split: str, folder: Path) -> None:
    """Write a split as spaCy's training reads it, by spaCy's converter."""
    from spacy.tokens import DocBin
    from spacy.training.converters.conllu_to_docs import conllu_to_docs

    docs = conllu_to_docs(treebank.text(split), n_sents=1, no_print=True)  # type: ignore[no-untyped-call]
    DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{split}.spacy")


class _Progress:
    """Progress of a training in words, as its batches grow, with the newest scores on the dev split."""

    def __init__(self, what: str, config: Any):
        size, steps = config["training"]["batcher"]["size"], config["training"]["max_steps"]
        sizes = (min(size["stop"], size["start"] * size["compound"] ** step) for step in range(steps))
        self._words = list(accumulate(sizes, initial=0.0))  # after each step, about
        self._step = 0
        self.activity = Activity(what, self._words[-1], "words")

    def logger(self) -> Callable[..., Any]:
        """Return the set-up of a logger, as spaCy's registry has it."""
        return lambda nlp, stdout, stderr: (self._log, lambda: None)

    def _log(self, info: dict[str, Any] | None) -> None:
        self._step += 1
        self.activity.completed = self._words[min(self._step, len(self._words) - 1)]
        if info is not None:
            las = info["other_scores"]["dep_las"]
            self.activity.detail = f"LAS {100 * las:.1f} on the dev split after {info['step']:,} steps"
