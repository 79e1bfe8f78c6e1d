"""`python -m eval.generate`: minimal pairs from templates, printed or as JSON Lines in BLiMP's form."""

from __future__ import annotations

import random
from itertools import islice

from rich.console import Console
from rich.markup import escape

from conf import main
from corpora.errors import InputError
from corpora.templates import Template
from eval.config import EvalConfig
from eval.generated import grammar_of, paradigms_of, template_of

console = Console(highlight=False, soft_wrap=True)


def run(config: EvalConfig) -> None:
    """Print pairs of each paradigm. Raises InputError where templates are broken, after all others are printed."""
    asked = config.benchmark
    assert asked.language is not None
    assert asked.pairs is not None
    grammar = grammar_of(asked.language)
    broken = []
    for name in paradigms_of(asked.language, asked.paradigms):
        try:
            template = template_of(asked.language, name, grammar)
            show(template, random.Random(f"{asked.seed}:{name}"), asked.pairs)
        except InputError as error:
            broken.append(name)
            console.print(f"{name}: {error}", style="red", markup=False)
    if broken:
        raise InputError(f"{len(broken)} paradigms cannot be drawn from: {', '.join(broken)}")


def show(template: Template, rng: random.Random, count: int) -> None:
    """Print `count` pairs of a template, and which of its bindings have no row."""
    console.print(f"[bold]{template.name}[/bold] {template.phenomenon}, {template.field}, prefix {template.prefix}")
    for text, reason in islice(template.left_out.items(), 10):
        console.print(f"  left out: {text}: {reason}", style="yellow", markup=False)
    if len(template.left_out) > 10:
        console.print(f"  and {len(template.left_out) - 10} more left out", style="yellow")
    for pair in template.pairs(rng, count):
        console.print(f"  {escape(pair['sentence_good'])}\n  [dim]*[/dim] {escape(pair['sentence_bad'])}")
        if template.prefix != "none":
            told = [value for key, value in pair.items() if "_prefix_" in key and not key.endswith("method")]
            console.print(f"    [dim]{escape(' | '.join(told))}[/dim]")


if __name__ == "__main__":
    main("generate", run)
