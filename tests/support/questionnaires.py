"""Create questionnaires with default settings and simulated pairs, and simulate people who answer them in a browser."""

from functools import cache

from eval.benchmarks.load import Benchmark
from eval.questionnaire.forms import deal, form_page, read_texts
from pairscale.command.compose import compose
from tests.support.simulated_study import SimulatedStudy

PAUSE = 350  # milliseconds to wait, because a pair that has just appeared doesn't accept an answer


@cache
def config(*overrides):
    """Return the settings of a questionnaire."""
    return compose("questionnaire", ["benchmark=toy", *overrides]).questionnaire


def forms_of(benchmark, *overrides):
    """Return forms for a benchmark's pairs, with English texts."""
    settings = config(*overrides)
    return deal(benchmark, settings, read_texts(settings, "en")["checks"])


PHENOMENA = {"binding": (2, 0.6, 0.05), "islands": (1, 0.5, 0.0)}


class Study(SimulatedStudy):
    """A simulated study whose sentences contain the name of their pair."""

    def items(self):
        named = (items := super().items())["paradigm"] + " " + items["pair_id"]
        return items.assign(good=named + " is right.", bad=named + " right is.")


STUDY = Study(models=("lstm_tiny",), sizes=("125k", "250k"), pairs=2, phenomena=PHENOMENA)
BENCHMARK = Benchmark("blimp", STUDY.items(), "be" * 32)


def write_form(path):
    """Write a form's page with all six pairs of the simulated study and two checks."""
    (one,) = forms_of(BENCHMARK, "questionnaire.per_paradigm=2", "questionnaire.checks=2")
    path.write_text(form_page("form-1", one, BENCHMARK, read_texts(config(), "en"), "en", "en"))


@cache
def good_checks():
    # Remove the initial capital, because the simulated study's pairs have none.
    return {good[:1].lower() + good[1:] for good in read_texts(config(), "en")["checks"]}


class Person:
    """A person who answers a form. Only the answers to the pairs in `wrong` are wrong; attention checks are passed.

    A fake clock skips the pauses before answers, unless the person `reloads` the page, which would remove the clock.
    """

    def __init__(self, opened, wrong=(), reloads=False):
        self.opened, self.page, self.wrong, self.reloads = opened, opened.page, set(wrong), reloads
        if not reloads:
            self.page.clock.install()

    def begin(self):
        self.page.check("input[name=native][value=yes]")
        self.page.check("input[name=consent]")
        self.page.click("#intro button[type=submit]")

    def choose(self, by="click"):
        """Answer a pair by a click, a tap or a key. Return False if no pair is left."""
        if self.page.locator("#task").is_hidden():
            return False
        if self.reloads:
            self.page.wait_for_timeout(PAUSE)
        else:
            self.page.clock.fast_forward(PAUSE)
        number = self.page.inner_text("#progress")
        shown = [self.page.inner_text(f"#{side}") for side in ("first", "second")]
        right = [text in good_checks() or text.endswith(" is right.") for text in shown].index(True)
        side = 1 - right if " ".join(shown[0].split()[:2]) in self.wrong else right
        button = self.page.locator(".sentence").nth(side)
        match by:
            case "click":
                button.click()
            case "tap":
                button.tap()
            case "number":
                self.page.keyboard.press("12"[side])
            case "arrow":
                self.page.keyboard.press(["ArrowLeft", "ArrowRight"][side])
        self.page.wait_for_function(
            """(number) => document.getElementById("task").hidden
                 || document.getElementById("progress").textContent !== number""",
            arg=number,
        )
        return True

    def answer_all(self, by="click"):
        """Answer the remaining pairs."""
        while self.choose(by):
            pass

    def save_answers(self, folder):
        """Download the answers to a folder, and return the file."""
        with self.page.expect_download() as started:
            self.page.click("#download")
        name = started.value.suggested_filename
        started.value.save_as(folder / name)
        assert name in self.page.inner_text("#downloaded")
        assert self.page.locator("#text").input_value() == (folder / name).read_text()
        assert self.opened.console == []
        self.page.context.close()
        return folder / name
