"""Generate minimal pairs in the toy language of corpora/toy, from paradigms.yaml and the language's grammar."""

import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from corpora.toy import is_reserved, toy_grammar
from eval.benchmarks.paradigm import Paradigm


@lru_cache(maxsize=1)
def toy_paradigms() -> list[Paradigm]:
    """Read the paradigms of paradigms.yaml. Raises InputError, with the paradigm, if one has no pairs."""
    described = yaml.safe_load(Path(__file__).with_name("paradigms.yaml").read_text("utf-8"))
    return [Paradigm(name, description, toy_grammar()) for name, description in described.items()]


def pairs(seed: int, per_paradigm: int) -> Iterator[dict[str, Any]]:
    """Yield `per_paradigm` different minimal pairs for each paradigm, with the keys of BLiMP's JSON Lines.

    A paradigm's pairs depend only on its name and the seed. Raises InputError if a paradigm has too few pairs.
    """
    for paradigm in toy_paradigms():
        rng = random.Random(f"{seed}:{paradigm.name}")
        yield from paradigm.pairs(
            rng, per_paradigm, lambda good, bad: "" if is_reserved(good) else "the text may contain the good sentence"
        )
