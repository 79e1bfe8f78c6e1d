"""Sentences of a benchmark in a corpus and in the samples of runs."""

import json

import pandas as pd
import pytest
from omegaconf import OmegaConf

from corpora.prepare import prepare
from corpora.text import SPLITS
from eval.overlap import run
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from train.runs.folder import RunFolder

PAIRS = [("The cats sleep.", "The cats sleeps."), ("The dog barks.", "The dog bark."), ("We left.", "We leaves.")]
PATHS_AND_BENCHMARK = 6  # overrides without a corpus
PARADIGMS = {"agreement": PAIRS[:2], "other": PAIRS[2:]}


@pytest.fixture
def overrides(tmp_path) -> list[str]:
    lines = [f"Sentence {n} is here ." for n in range(200)]
    lines[10::50] = ["the cats  sleep ."] * 4
    lines[20] = "The dog bark ."
    (tmp_path / "text.txt").write_text("\n\n".join(lines))
    folder = tmp_path / "pairs"
    folder.mkdir()
    for name, pairs in PARADIGMS.items():
        rows = [{"sentence_good": good, "sentence_bad": bad} for good, bad in pairs]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs", "reports")]
    corpus = ["corpus=local", "corpus.name=mine", f"corpus.path={tmp_path}/text.txt", "tokenizer=word"]
    split = ["corpus.split.valid=0.2", "corpus.split.test=0.2"]
    return [*paths, "benchmark=local", "benchmark.name=b", f"benchmark.path={folder}", *corpus, *split]


def write_runs(overrides, sizes: list[str]) -> dict[str, set[str]]:
    """Write the folders of runs of the study s, and return the sentences of their samples."""
    samples = {}
    for size in sizes:
        config = compose("eval", [*overrides, "study=s", "model=lstm_tiny", f"sample.size={size}"])
        corpus, folder = prepare(config), RunFolder.of(config)
        folder.path.mkdir(parents=True)
        folder.config.write_text(OmegaConf.to_yaml(OmegaConf.structured(config)))
        folder.update_manifest(corpus=corpus.manifest)
        samples[folder.path.name] = set(corpus.text.sentences(corpus.drawn.indices))
    return samples


def test_sentences_are_listed_with_their_splits(overrides, tmp_path, capsys):
    config = compose("overlap", overrides)
    run(config)
    printed = " ".join(capsys.readouterr().out.split())
    text = prepare(config).text
    rows = pd.read_csv(tmp_path / "reports" / "overlap" / "b-mine.csv").set_index("sentence")
    assert rows[["paradigm", "side"]].to_numpy().tolist() == [["agreement", "good"], ["agreement", "bad"]]
    for sentence, spelled in (("The cats sleep.", "the cats  sleep ."), ("The dog bark.", "The dog bark .")):
        for split in SPLITS:
            inside = list(text.sentences(text.split_sentences(split)))
            assert rows.loc[sentence, split] == inside.count(spelled), (sentence, split)
    assert rows.loc["The cats sleep.", list(SPLITS)].sum() == 4
    assert "2 of 6 sentences occur in the text (1 good and 1 bad)" in printed
    assert "they are of 2 of 3 pairs" in printed


def test_samples_of_runs_are_searched_alone(overrides, tmp_path, capsys):
    samples = write_runs(overrides, ["60", "500"])
    run(compose("overlap", [*overrides[:PATHS_AND_BENCHMARK], "study=s"]))
    rows = pd.read_csv(tmp_path / "reports" / "s" / "overlap" / "b-mine.csv").set_index("sentence")
    for name, sample in samples.items():
        assert rows.loc["The cats sleep.", name] == ("the cats  sleep ." in sample)
        assert rows.loc["The dog bark.", name] == ("The dog bark ." in sample)
    assert "samples of 2 runs have" in capsys.readouterr().out


def test_refusals(overrides):
    with pytest.raises(ConfigError, match="benchmark=cprag: has no pairs"):
        run(compose("overlap", [*overrides[:3], "benchmark=cprag"]))
    with pytest.raises(RunError, match="“s”"):
        run(compose("overlap", [*overrides, "study=s"]))
    with pytest.raises(ConfigError, match="corpus: not set"):
        run(compose("overlap", overrides[:PATHS_AND_BENCHMARK]))
