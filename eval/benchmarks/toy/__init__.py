"""Minimal pairs in the small English of corpora/toy, from paradigms.yaml and the words of its grammar."""

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
    """The paradigms of paradigms.yaml. Raises InputError, naming the paradigm, for one that cannot be drawn from."""
    described = yaml.safe_load(Path(__file__).with_name("paradigms.yaml").read_text("utf-8"))
    return [Paradigm(name, description, toy_grammar()) for name, description in described.items()]


def pairs(seed: int, per_paradigm: int) -> Iterator[dict[str, Any]]:
    """Minimal pairs, `per_paradigm` different ones of each paradigm, with the keys of BLiMP's JSON Lines.

    A paradigm's pairs depend on nothing but its name and the seed. Raises InputError where it has too few.
    """
    for paradigm in toy_paradigms():
        rng = random.Random(f"{seed}:{paradigm.name}")
        yield from paradigm.pairs(
            rng, per_paradigm, lambda good, bad: "" if is_reserved(good) else "that the text may hold"
        )
