"""Questionnaires with the default settings."""

from functools import cache

from eval.questionnaire.forms import deal, texts_of
from pairscale.command.compose import compose


@cache
def config(*overrides):
    """Return the settings of a questionnaire."""
    return compose("questionnaire", ["benchmark=toy", *overrides]).questionnaire


def forms_of(benchmark, *overrides):
    """Return the forms of a benchmark's pairs, with English texts."""
    settings = config(*overrides)
    return deal(benchmark, settings, texts_of(settings, "en")["en"])
