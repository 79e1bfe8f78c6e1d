"""Minimal pairs in the small English of corpora/toy, from templates.yaml and the words of its grammar."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from corpora.toy import is_reserved, toy_grammar
from eval.benchmarks.template import Template

FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def toy_templates() -> list[Template]:
    """The templates of templates.yaml. Raises InputError, naming the template, for one that cannot be drawn from."""
    described = yaml.safe_load((FOLDER / "templates.yaml").read_text("utf-8"))
    return [Template(name, description, toy_grammar()) for name, description in described.items()]


def _in_text(good: str, bad: str) -> str | None:
    return None if is_reserved(good) else "that the text may hold"


def pairs(seed: int, per_paradigm: int) -> Iterator[dict[str, Any]]:
    """Minimal pairs, `per_paradigm` different ones of each template, with the keys of BLiMP's JSON Lines.

    A template's pairs depend on nothing but its name and the seed. Raises InputError where it has too few.
    """
    for template in toy_templates():
        rng = random.Random(f"{seed}:{template.name}")
        for index, pair in enumerate(template.pairs(rng, per_paradigm, _in_text)):
            yield {**pair, "pairID": str(index)}
