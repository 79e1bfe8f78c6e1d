"""What tables of others hold that would be read wrong, or told in a hint that leads nowhere."""

import pytest

from analysis.study.sources.source import overrides, requested_source, sources
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

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


@pytest.mark.parametrize(
    ("source", "value", "others"),
    [
        ("lm_eval", "results.percent=true", "table"),
        ("babylm", "results.percent=true", "table"),
        ("babylm", "results.n=1000", "lm_eval|table"),
        ("table", "results.metric=acc_norm", "lm_eval"),
        ("table", "results.pairs=blimp", "babylm"),
        ("lm_eval", "results.pairs=blimp", "babylm"),
    ],
)
def test_values_that_a_source_does_not_read_are_refused(source, value, others):
    with pytest.raises(ConfigError) as error:
        requested_source(compose("analysis", [f"source={source}", "path=x", value]))
    assert str(error.value) == f"{value}: of source={others}, but source={source}"


def test_a_size_of_all_rows_beside_a_column_of_sizes_is_refused(tmp_path):
    message = r"line 2: results\.size=10M, but column 'size' holds sizes; columns\.size='' leaves that column out$"
    with pytest.raises(InputError, match=message):
        study_of(tmp_path, "results.size=10M", t=lines(sizes=("1M",)))
    study = study_of(tmp_path, "results.size=10M", "columns.size=''", t=lines(sizes=("1M",)))
    assert set(study.runs["sample_words"]) == {10_000_000}


def test_shares_are_not_per_cent(tmp_path):
    table = lines()
    table[3] = table[3].replace("0.6", "0.97")
    message = (
        r"t\.csv: line 5: the largest accuracy is 0\.97 with results\.percent=true: must be per cent; leave it out"
    )
    with pytest.raises(InputError, match=message):
        study_of(tmp_path, "results.percent=true", t=table)
    study_of(tmp_path, "results.percent=true", t=[row.replace("0.6", "0") for row in table if "0.97" not in row])
    pairs = "model,size,seed,paradigm,correct\na,1M,1,x,1\na,10M,1,x,0"
    with pytest.raises(InputError, match=r"line 2: results\.percent=true, but a row is a pair, without an accuracy"):
        study_of(tmp_path, "results.percent=true", t=pairs)


def test_stray_quotes_have_no_hint_of_another_command(tmp_path):
    with pytest.raises(InputError, match=r"line 2: not CSV .* quotes in a quoted cell are written twice$"):
        study_of(tmp_path, t=f'{HEADER}\na,1M,1,"wh "isl",.5,10')


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_comma_in_a_name_is_no_delimiter(tmp_path, separator):
    text = "\n".join([HEADER.replace("accuracy", "accuracy (0.1)"), *lines()])
    text = text.replace(",", separator).replace("(0.1)", "(0,1)")
    study = study_of(tmp_path, "columns.accuracy='accuracy (0,1)'", t=text)
    assert len(study.runs) == 4


@pytest.mark.parametrize("separator", [",", ";", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_delimiter_that_excel_writes_is_read(tmp_path, mark, separator):
    text = "\n".join([f"{mark}sep=,", HEADER, *lines()]).replace(",", separator)
    assert len(study_of(tmp_path, t=text).runs) == 4
    with pytest.raises(InputError, match=r"line 3: size is 'big', must be a number"):
        study_of(tmp_path, t=text.replace("1M", "big"))


def test_paradigms_in_another_case_are_refused(tmp_path):
    table = [*lines(seeds=(1,), paradigms=("wh_x",)), *lines(seeds=(2,), paradigms=("WH_X",))]
    for missing in ("paradigms", "runs"):
        with pytest.raises(InputError) as error:
            study_of(tmp_path, f"results.missing={missing}", t=table)
        place = f"{tmp_path / 't.csv'}: line"
        assert str(error.value) == (
            f"{place} 4: paradigm is 'WH_X', but 'wh_x' at {place} 2; one paradigm must be written in one way"
        )


def test_hints_on_paradigms_that_runs_lack_do_not_lead_to_each_other(tmp_path):
    apart = [*lines(seeds=(1,), paradigms=("x",)), *lines(seeds=(2,), paradigms=("y",))]
    for missing in ("paradigms", "runs"):
        with pytest.raises(InputError, match=r"no paradigm is in all|every run lacks some") as error:
            study_of(tmp_path, f"results.missing={missing}", t=apart)
        assert "results.missing" not in str(error.value)
    whole = [*apart, *lines("b")]
    with pytest.raises(InputError, match=r"results\.missing=runs leaves runs out instead"):
        study_of(tmp_path, t=whole)
    assert set(study_of(tmp_path, "results.missing=runs", t=whole).runs["model"]) == {"b"}


def test_two_spellings_of_a_phenomenon_are_refused(tmp_path):
    rows = lines(seeds=(1,))
    table = [f"{row},{'island_effects' if ',x,' in row else 'Island  effects'}" for row in rows]
    message = r"line 3: phenomenon is 'Island  effects', but 'island_effects' at .*line 2; one phenomenon must be"
    with pytest.raises(InputError, match=message):
        study_of(tmp_path, t="\n".join([f"{HEADER},phenomenon", *table]))


def test_a_file_without_numbers_of_pairs_beside_one_with_them_is_refused(tmp_path):
    tables = {"fa": lines(), "fb": without("n", "\n".join([HEADER, *lines("b")]))}
    with pytest.raises(
        InputError, match=r"fb\.csv: line 2: no number of pairs \(n\), but others have one .*fa\.csv.*results"
    ):
        study_of(tmp_path, **tables)
    notes = study_of(tmp_path, "results.n=50", **tables).notes
    assert any(note.startswith("Runs have different numbers of pairs, from 50 to 100") for note in notes)


def test_a_table_without_a_size_above_0_is_told_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"a\.csv: line 2: size 0, as all are"):
        study_of(tmp_path, a=lines(sizes=("0",)))


def test_letters_that_hydra_does_not_read_are_quoted_in_printed_commands():
    config = compose("analysis", ["source=table", "path=['é.csv',b.csv]"])
    printed = overrides(config, ("path",))
    assert printed == ["path=['é.csv',b.csv]"]
    assert compose("analysis", ["source=table", *printed]) == config
