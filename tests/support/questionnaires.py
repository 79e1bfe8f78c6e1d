"""Questionnaires of the defaults."""

from functools import cache

from eval.questionnaire.forms import deal, texts_of
from pairscale.command.compose import compose


@cache
def config(*overrides):
    """The configuration of a questionnaire."""
    return compose("questionnaire", ["benchmark=toy", *overrides]).questionnaire


def forms_of(benchmark, *overrides):
    """The forms of a benchmark's pairs, with English texts."""
    requested = config(*overrides)
    texts, _ = texts_of(requested, "en")
    return deal(benchmark, requested, texts)
