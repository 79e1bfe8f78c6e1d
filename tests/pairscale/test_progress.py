"""Progress: rates and times left, lines that fit, and tables that keep numbers whole."""

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

import pairscale.progress
from pairscale.command.board import Board, Ended, run_names
from pairscale.command.help import help_text, laid_out
from pairscale.progress import Activity, Result, State, drawing, shown, with_progress
from pairscale.tables import plain_table, print_table


def terminal(width):
    return Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False, color_system=None)


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still until it is set."""
    moment = [100.0]
    monkeypatch.setattr("pairscale.progress.time.monotonic", lambda: moment[0])
    return moment


def test_rate_share_and_time_left_leave_out_what_was_done_before(now):
    activity = Activity("training", 1000, "words", completed=400)
    now[0] += 20
    assert activity.state == State("training", 0.4, 400, "words")  # resumed, nothing done since: no rate yet
    activity.completed = 600
    assert activity.state == State("training", 0.6, 600, "words", rate=10, left=40)
    assert activity.state.parts() == ["60%", "10 words/s", "40 s left"]


def test_there_is_no_time_left_before_the_rate_is_measured(now):
    activity = Activity("training", 1000, "words")
    now[0] += 1
    activity.completed = 100  # ten times as fast as the rest
    assert activity.state == State("training", 0.1, 100, "words", rate=100)
    now[0] += 9
    activity.completed = 190
    assert activity.state.left == pytest.approx(810 / 19)


def test_steps_are_counted_once_they_are_done():
    states = []
    for _ in with_progress([(2, "a"), (3, "b")], "scoring", 5, "pairs"):
        states.append(pairscale.progress.state_now())
    assert [(state.what, state.completed, state.share) for state in states] == [("scoring", 0, 0), ("scoring", 2, 0.4)]
    assert pairscale.progress.state_now().what != "scoring"


@pytest.mark.parametrize("width", [40, 200])
def test_the_runs_at_work_fit_the_terminal_each_in_a_line(width, monkeypatch):
    console = terminal(width)
    monkeypatch.setattr("pairscale.command.board.terminal", lambda: console)
    names = ["lstm_tiny, 4k words, seed 1", "txl_tiny, an axis of a very long name=1e-12, seed 2", "c"]
    sweep = Board(names, [1e4, 1e4, 1e4])
    with sweep.shown():
        for run in range(3):
            sweep.observe(run, State("starting"))
        sweep.observe(0, State("training", 0.62, 6200, "words", 1_234_567.0, 3599.0))
        sweep.end(Ended(2, 1, 3.0, reason="no"))
        console.file.truncate(0)
        sweep.refresh()
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", console.file.getvalue()).strip("\0")
    summary, *rows = plain.splitlines()
    assert all(len(line) <= width for line in (summary, *rows))
    assert summary.startswith("0 of 3 runs done")
    assert [row[:3] for row in rows] == ["lst", "txl"]
    assert "62%" in rows[0]


def test_a_run_at_work_fits_the_terminal(monkeypatch):
    monkeypatch.setattr(pairscale.progress, "_process", pairscale.progress._Process())
    with Activity("training", 2_000_000, "words", 1_000_000) as activity:
        activity.detail = "loss 4.123 nats/token (61.7), valid perplexity 191.9 a word"
        console = terminal(40)
        console.print(drawing("lstm_tiny, 1/8M words of wikipedia_en, seed 1", 40))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert "50%" in lines[1]


def test_the_table_at_the_end_is_in_order_of_the_results(capsys):
    sweep = Board(["a", "b", "c", "d"])
    with sweep.shown():
        sweep.end(Ended(0, 0, 60.0, Result(1000, 0.5, 99.95, new=True)))
        sweep.end(Ended(1, 2, 1.0, reason="no such model (runs/s/1.log)"))
        sweep.end(Ended(2, 0, 61.0, Result(2000, 0.75, 1234.56, new=True)))
        sweep.end(Ended(3, 0, 2.0, Result(3000, None, 12.0)))
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert lines[0].startswith("[1/4] done a in 1 min 00 s: accuracy 50.0%, perplexity 100.0")
    assert lines[1].startswith("[2/4] FAILED b in 1 s")
    assert lines[2].strip() == "no such model (runs/s/1.log)"
    assert lines[4] == "[4/4] done already d: perplexity 12.0"
    assert [line.split()[:4] for line in printed.out.splitlines()[1:]] == [
        ["c", "2,000", "75.0%", "1,234.6"],
        ["a", "1,000", "50.0%", "100.0"],
        ["d", "3,000", "12.0"],
        ["FAILED:", "b"],
    ]


@pytest.fixture
def clock_of_sweeps(monkeypatch):
    moment = [0.0]
    monkeypatch.setattr("pairscale.command.board.time.monotonic", lambda: moment[0])
    return moment


def test_the_time_left_of_a_sweep_follows_from_its_words(clock_of_sweeps):
    """The mean of the two smallest of 16 runs would give 14 x 200 / 2 = 23 minutes."""
    sizes = [125_000.0 * 2**power for power in range(4) for _ in range(4)]
    sweep = Board([str(size) for size in sizes], sizes)
    for run in (0, 1):
        sweep.observe(run, State("starting"))
    assert sweep.left() is None
    clock_of_sweeps[0] = 200.0
    sweep.end(Ended(0, 0, 200.0, Result(new=True)))
    sweep.end(Ended(1, 0, 200.0, Result(new=True)))
    assert sweep.left() == pytest.approx(200 * (2 + 4 * 2 + 4 * 4 + 4 * 8) / 2)
    sweep.end(Ended(2, 1, 0.0))  # failed at once: it says nothing about the others
    assert sweep.left() == pytest.approx(200 * (1 + 4 * 2 + 4 * 4 + 4 * 8) / 2)


def test_the_time_left_takes_no_run_for_faster_that_goes_on_near_its_end(clock_of_sweeps):
    """Nor does it count the time before the first step, in which one run prepares the corpus for all."""
    sweep = Board(["a", "b"], [1000.0, 1000.0])
    sweep.observe(0, State("starting"))
    clock_of_sweeps[0] = 600.0
    sweep.observe(0, State("training", 0.8))
    clock_of_sweeps[0] = 610.0
    sweep.observe(0, State("training", 0.9))
    assert sweep.left() is None  # its first steps tell nothing
    clock_of_sweeps[0] = 630.0
    sweep.observe(0, State("training", 0.9))
    assert sweep.left() == pytest.approx(30 * (0.1 + 1) / 0.1)  # a tenth of a run in 30 seconds
    sweep.observe(0, State("training", 0.9, left=1000.0))
    assert sweep.left() == 1000  # no less than a run at work needs


def test_the_time_left_of_runs_that_train_nothing_follows_from_their_number(clock_of_sweeps):
    sweep = Board(["a", "b", "c"])
    clock_of_sweeps[0] = 30.0
    sweep.end(Ended(0, 0, 2.0, Result(1000, 0.5)))  # done before this sweep, perhaps in an hour
    assert sweep.left() is None
    sweep.end(Ended(1, 0, 30.0, Result(new=True)))
    assert sweep.left() == pytest.approx(30)


def test_runs_are_named_by_what_differs():
    points = [["model=lstm", f"sample.size={size}", f"+recipe.budget.epochs={n}", "seed=1"] for size in ("1k", "2k")
              for n in (1, 2)]  # fmt: skip
    names = run_names(points, ["words"] * 4)
    assert names == ["1k words, epochs=1", "1k words, epochs=2", "2k words, epochs=1", "2k words, epochs=2"]
    assert run_names(points[:1], ["words"]) == ["lstm, 1k words, seed 1"]
    assert run_names([["a=1"], ["a=1"]], ["words", "sentences"]) == ["run 1", "run 2"]


def test_a_view_is_a_line_a_minute_where_the_output_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr("pairscale.progress.LINE_SECONDS", 0.01)
    lines = []
    with shown("a run"), Activity("training", 2, "words"):
        while not lines:
            lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("a run: ")
    assert "\x1b" not in lines[0]


@pytest.mark.parametrize(("width", "shown"), [(30, []), (50, ["no <unk>"]), (80, ["pairs", "no <unk>"])])
def test_tables_keep_numbers_whole_and_name_what_they_leave_out(width, shown):
    table = plain_table("a title that is longer than the table", Text("a caption"))
    table.add_column("phenomenon")
    for heading in ("pairs", "accuracy", "95%", "no\n<unk>"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row("anaphor_agreement", "15", "53.3", "30.4–75.0", "1,234.5")
    console = terminal(width)
    print_table(console, table, ("pairs", "absent", "no\n<unk>"))
    text = console.file.getvalue()
    assert all(len(line) <= width for line in text.splitlines())
    left_out = " ".join(text.split()).partition(f"not shown at {width} characters: ")[2]
    assert [heading for heading in ("pairs", "no <unk>") if heading not in left_out] == shown
    numbers = ["15"] * ("pairs" in shown) + ["53.3", "30.4–75.0"] + ["1,234.5"] * ("no <unk>" in shown)
    assert any(line.split()[-len(numbers) :] == numbers for line in text.splitlines()), text


def test_help_is_no_wider_than_the_terminal_and_loses_nothing():
    text = help_text("train")
    lines = laid_out(text, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert [word for line in lines for word in line.removesuffix(" \\").split()] == text.split()
