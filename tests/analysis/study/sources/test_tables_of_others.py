"""What tables of others hold that would be read wrong, or told in a hint that leads nowhere."""

from analysis.study.sources.source import sources
from pairscale.command.compose import compose

HEADER = "model,size,seed,paradigm,accuracy,n"


def lines(model="a", seeds=(1, 2), sizes=("1M", "10M"), paradigms=("x", "y")):
    return [
        f"{model},{size},{seed},{paradigm},0.6,100" for size in sizes for seed in seeds for paradigm in paradigms
    ]  # fmt: skip


def without(column, text):
    """Return a table of lines without one of its columns."""
    place = HEADER.split(",").index(column)
    rows = [line.split(",") for line in text.splitlines()]
    return "\n".join(",".join(cells[:place] + cells[place + 1 :]) for cells in rows)


def study_of(tmp_path, *overrides, **tables):
    """Return the study of files NAME.csv and their lines."""
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text if isinstance(text, str) else "\n".join([HEADER, *text]))
    path = ",".join(str(tmp_path / f"{name}.csv") for name in tables)
    (study,) = sources()["table"].collect(compose("analysis", ["source=table", f"path=[{path}]", *overrides]))
    return study


def test_files_without_seeds_are_named(tmp_path):
    table = "\n".join([HEADER, *lines("b", seeds=(1,))])
    notes = study_of(tmp_path, fa=lines(), fb=without("seed", table)).notes
    (note,) = (note for note in notes if "seeds are given" in note)
    assert note.startswith(f"No seeds are given for {tmp_path / 'fb.csv'}: one run a size there")
    notes = study_of(tmp_path, fb=without("seed", table)).notes
    assert any(note.startswith("No seeds are given: one run a size,") for note in notes)
