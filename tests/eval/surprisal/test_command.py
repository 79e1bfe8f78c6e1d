"""`python -m eval.surprisal`: files of each run and of pretrained models, made once."""

import pandas as pd
import pytest

from eval import load_scorer, surprisals
from eval.scores.files import read_words, write_words
from eval.surprisal.run import run
from pairscale.command.compose import compose
from pairscale.command.line import Line
from pairscale.errors import ConfigError, RunError
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import byte_level, gpt2, with_random_weights

TEXT = "The cats sleep near a dog .\nThe cat sleeps .\n"


def configured(folder, *overrides):
    paths = [f"paths.runs={folder}/runs", f"paths.reports={folder}/reports", "trainer.progress=false"]
    return compose("surprisal", [*paths, "study=s", f"text={folder}/two.txt", *overrides])


@pytest.fixture
def study(tmp_path):
    (tmp_path / "two.txt").write_text(TEXT)
    for seed, model in enumerate((LSTM, TXL)):
        config = compose("train", [f"paths.runs={tmp_path}/runs", "corpus=toy", "study=s", f"seed={seed}"])
        simulated_run(config, random_model(model, seed=seed))
    return tmp_path


def test_each_run_has_a_file_with_a_row_a_word(study, capsys):
    run(configured(study))
    files = sorted((study / "reports/s/surprisal/two").glob("*.parquet"))
    folders = sorted((study / "runs/s").iterdir())
    assert [file.stem for file in files] == [folder.name for folder in folders]
    for file, folder in zip(files, folders, strict=True):
        words, metadata = read_words(file)
        expected = surprisals(load_scorer(folder), TEXT.splitlines())
        pd.testing.assert_frame_equal(words, expected)
        as_csv = pd.read_csv(file.with_suffix(".csv"), dtype={"text_id": str})
        pd.testing.assert_frame_equal(as_csv, expected)
        assert metadata["model"]["name"] == folder.name
    printed = capsys.readouterr().out
    assert "Surprisal of two.txt" in printed
    for folder in folders:
        assert folder.name in printed


def test_columns_of_the_user_that_have_our_names_are_kept(study):
    rows = ["text_id,word,surprisal,tokens,zone", "a,The,12.5,x,1", "a,cats,3.25,y,2", "b,sleep,0.5,z,3"]
    (study / "mine.csv").write_text("\n".join(rows) + "\n")
    (study / "plain.csv").write_text("text_id,word\na,The\na,cats\nb,sleep\n")
    for name in ("mine", "plain"):
        run(configured(study, f"text={study}/{name}.csv"))
    for plain in (study / "reports/s/surprisal/plain").iterdir():
        beside = plain.parents[1] / "mine" / plain.name
        mine, expected = (
            pd.read_csv(file) if file.suffix == ".csv" else read_words(file)[0] for file in (beside, plain)
        )
        pd.testing.assert_frame_equal(mine[list(expected)], expected)
        given = mine[["surprisal_given", "tokens_given", "zone"]].astype(str)
        assert given.to_numpy().tolist() == [["12.5", "x", "1"], ["3.25", "y", "2"], ["0.5", "z", "3"]]


def test_files_are_made_once_for_a_text_and_a_model(study):
    def times():
        return [path.stat().st_mtime_ns for path in sorted((study / "reports").rglob("*.parquet"))]

    run(configured(study))
    first = times()
    run(configured(study))
    assert times() == first
    run(configured(study, "surprisal.window=4"))
    again = times()
    assert not set(first) & set(again)
    (study / "two.txt").write_text(TEXT + "Woof .\n")
    run(configured(study, "surprisal.window=4"))
    assert not set(times()) & set(again)


def test_a_pretrained_model_and_a_table_of_words(study):
    tokenizer = byte_level()
    with_random_weights(gpt2, tokenizer).save_pretrained(study / "gpt")
    tokenizer.save_pretrained(study / "gpt")
    (study / "regions.csv").write_text("text_id,word,zone\n1,The cats,4\n1,sleep .,5\n2,Who ?,6\n")
    model = ["model=hf_causal", f"model.path={study}/gpt", "study=null", f"text={study}/regions.csv"]
    with pytest.raises(ConfigError, match=r"run=105b7cda and model=hf_causal both choose a model"):
        run(configured(study, *model, "run=105b7cda"))
    run(configured(study, *model))
    (file,) = (study / "reports/surprisal/regions").glob("*.parquet")
    words = pd.read_parquet(file)
    assert list(words["zone"]) == ["4", "5", "6"]
    expected = surprisals(load_scorer(study / "gpt"), [["The cats", "sleep ."], ["Who ?"]])
    assert words["surprisal"].to_numpy() == pytest.approx(expected["surprisal"].to_numpy())


def test_a_damaged_file_is_reported(study):
    run(configured(study))
    file = next((study / "reports").rglob("*.parquet"))
    content = file.read_bytes()
    for damaged in (content[:-200], b""):
        file.write_bytes(damaged)
        with pytest.raises(RunError, match=rf"{file}: this file is damaged .* Remove this file"):
            run(configured(study))


def test_a_surprisal_that_is_no_number_is_an_error(study):
    words = surprisals(load_scorer(next((study / "runs/s").iterdir())), ["The cats sleep ."])
    words.loc[2, "surprisal"] = float("inf")
    with pytest.raises(RunError, match=r"1 of 4 words .* inf for 'sleep' \(word 3 of text 1\)"):
        write_words(study / "a.parquet", words, {})
    assert not list(study.glob("a.*"))


def test_commands_that_name_no_text_or_model_are_refused(study, monkeypatch):
    for override, message in (("text=null", "Add text=FILE"), ("study=null", "Add study=NAME")):
        with pytest.raises(ConfigError, match=message):
            run(configured(study, override))
    with monkeypatch.context() as patch:
        patch.setattr("pairscale.command.line._current", Line.of(["study=s", "model=lstm"]))
        with pytest.raises(ConfigError, match=r"model=lstm: only pretrained models"):
            run(configured(study, "model=lstm"))
    for folder in (study / "runs/s").iterdir():
        (folder / "manifest.json").unlink()
    with pytest.raises(RunError, match="study=s: no run is finished, so none can be read"):
        run(configured(study))
