"""Imported checkpoints: runs with the probabilities of plain loops over the published weights."""

import dataclasses
import json
from itertools import chain

import pandas as pd
import pytest
import torch

from analysis import runs
from corpora.tokenizers import EOS, UNK
from eval.benchmarks.load import loaded_benchmark
from eval.run import score_study
from eval.scores.files import read_scores, score_path
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, PairscaleError, RunError
from pairscale.files import sha256_file
from tests.support.published_models import (
    Corpus,
    MemTransformerLM,
    RNNModel,
    Vocab,
    lstm_logprobs,
    randomised,
    save,
    txl_logprobs,
)
from tests.support.small_runs import study_overrides
from train.import_checkpoint.run import import_run
from train.runs.model_folder import load_model

WORDS = ["The", "cat", "<unk>", "cats", "<eos>", "sleep", "sleeps", ".", "does", "n't", "dog", "barks", "near", "a"]


@pytest.fixture(scope="module")
def base_config():
    """Return the command's configuration, before a file is named."""
    return compose("import_checkpoint", ["model.checkpoint=none", "study=s"])


@pytest.fixture
def import_model(tmp_path, base_config):
    """Return a function that imports tmp_path/model.pt with values of `model` and returns the run folder."""
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))

    def run(**values):
        model = dataclasses.replace(base_config.model, **{"checkpoint": f"{tmp_path}/model.pt", **values})
        paths = dataclasses.replace(base_config.paths, runs=f"{tmp_path}/runs")
        return import_run(dataclasses.replace(base_config, model=model, paths=paths))

    return run


def assert_logprobs(folder, expected, segments):
    """Assert that the run's model gives (T, V) `expected`, with columns WORDS, for the tokens of `segments`."""
    loaded = load_model(folder.model)
    known = {loaded.tokenizer.token(index): index for index in range(len(loaded.tokenizer))}
    assert (known["<eos>"], known["<unk>"]) == (EOS, UNK)
    ours = torch.tensor([known[word] for word in WORDS])
    state, rows = loaded.model.initial_state(1), []
    with torch.no_grad():
        for tokens in segments:
            hidden, state = loaded.model(ours[tokens][None], state)
            place = torch.arange(len(tokens)).repeat_interleave(len(WORDS))
            rows.append(loaded.model.logprobs(hidden[0], ours.repeat(len(tokens)), place).view(-1, len(WORDS)))
    torch.testing.assert_close(torch.cat(rows).double(), expected, rtol=2e-6, atol=1e-5)


SEGMENTS = [[4, 0, 1, 6], [7, 4, 10, 2], [13, 5, 12]]


@pytest.mark.parametrize(
    ("old", "bare", "tied", "wrapped"),
    [
        (False, False, False, False),
        (True, False, True, False),
        (False, True, True, False),
        (True, False, False, True),
        (False, True, False, True),
    ],
)
def test_an_imported_lstm_gives_the_same_probabilities(tmp_path, import_model, old, bare, tied, wrapped):
    model = randomised(RNNModel(len(WORDS), 5, 5 if tied else 6, 2, tied))
    saved = torch.nn.DataParallel(model.half()) if wrapped else model
    save(saved.state_dict() if bare else saved, tmp_path / "model.pt", old)
    run = import_model()
    assert_logprobs(run, lstm_logprobs(model, list(chain(*SEGMENTS))), SEGMENTS)
    loaded = load_model(run.model)
    assert (loaded.config.tied, loaded.config.dropout) == (tied, 0.0 if bare else 0.3)
    ids, _ = loaded.tokenizer.encode_raw("The cat doesn't sleep.")
    assert " ".join(map(loaded.tokenizer.token, ids)) == "The cat does n't sleep ."


VARIANTS = {
    "untied": {"tied": False},
    "pre_norm": {"pre_norm": True, "memory": 3},
    "same_length": {"same": True, "clamp": 2},
    "no memory": {"memory": 0},
    "projected": {"embedding": 6},
    "adaptive": {"cutoffs": [6, 9]},
    "adaptive, projected": {"cutoffs": [6, 9], "embedding": 6},
    "adaptive, divided": {"cutoffs": [6, 9, 12], "div": 2},
    "adaptive, divided, untied": {"cutoffs": [6, 9], "div": 2, "embedding": 12, "tied": False, "pre_norm": True},
    "one cluster, divided": {"div": 2},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_imported_transformer_xl_gives_the_same_probabilities(tmp_path, import_model, variant):
    values = VARIANTS[variant]
    model = randomised(MemTransformerLM(len(WORDS), **values))
    if variant == "one cluster, divided":  # a square projection, which only div_val above 1 makes
        model.word_emb.emb_projs = torch.nn.ParameterList([torch.randn(8, 8)])
        model.crit.out_projs = torch.nn.ParameterList([torch.randn(8, 8)])
    expected = txl_logprobs(model, SEGMENTS)
    save(model, tmp_path / "model.pt", old=len(variant) % 2 == 0)
    run = import_model()
    assert_logprobs(run, expected, SEGMENTS)
    config = load_model(run.model).config
    assert config.memory == values.get("memory", 5)
    assert config.tied == values.get("tied", True)
    assert config.tied_projections == (variant in ("adaptive, projected", "adaptive, divided"))
    # Values that a state_dict does not hold must be set; then it is the same model.
    save(model.state_dict(), tmp_path / "model.pt")
    settings = {"memory": model.mem_len, "pre_norm": values.get("pre_norm", False), "name": "bare"}
    with pytest.raises(ConfigError, match=r"Set model\.same_length, model\.clamp_len"):
        import_model(**settings)
    settings |= {"same_length": model.same_length, "clamp_len": model.clamp_len}
    if "cutoffs" in values and "div" not in values:
        with pytest.raises(ConfigError, match=r"with model\.cutoffs="):
            import_model(**settings)
        settings["cutoffs"] = values["cutoffs"]
    assert_logprobs(import_model(**settings), expected, SEGMENTS)


def test_an_imported_transformer_xl_may_have_another_memory(tmp_path, import_model):
    model = randomised(MemTransformerLM(len(WORDS)))
    save(model, tmp_path / "model.pt")
    model.mem_len, model.same_length, model.clamp_len = 7, True, 4
    expected = txl_logprobs(model, SEGMENTS)
    assert_logprobs(import_model(memory=7, same_length=True, clamp_len=4), expected, SEGMENTS)


MISFITS = {
    "a GRU": (RNNModel(14, 5, 6, 1, kind="GRU"), "size mismatch for lstm.weight_ih_l0"),
    "more words": (RNNModel(15, 5, 6, 1), "not the vocabulary of .*model.pt. It has 14 words, .* rows for 15"),
    "fewer words": (MemTransformerLM(13), "not the vocabulary of .*model.pt. It has 14 words, .* rows for 13"),
    "special words among the rare": (MemTransformerLM(14, cutoffs=[3, 9]), "in the first cluster of 3 words"),
    "another model": (torch.nn.Linear(2, 3), "neither from colorlessgreenRNNs"),
    "numbers": ([1, 2], "must contain a model or a state_dict"),
    "one weight too many": ({**RNNModel(14, 5, 6, 1).state_dict(), "more": torch.ones(2)}, 'Unexpected key.*"more"'),
    "one weight too few": (
        {"encoder.weight": torch.ones(14, 2)},
        "not a checkpoint that can be imported .*decoder.weight",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_model_that_does_not_fit_is_a_message_of_one_line(tmp_path, import_model, name):
    model, message = MISFITS[name]
    save(model, tmp_path / "model.pt")
    with pytest.raises(InputError, match=message) as raised:
        import_model()
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "runs").exists(), "nothing is left behind"


def test_values_and_vocabularies_that_do_not_fit_are_messages_of_one_line(tmp_path, import_model):
    save(RNNModel(14, 5, 6, 1), tmp_path / "model.pt")
    (tmp_path / "latin.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    for values, message in (
        ({"memory": 3}, "model.memory: .* is an LSTM"),
        ({"vocabulary": "none.txt"}, "none.txt: .* model.vocabulary"),
        ({"vocabulary": f"{tmp_path}/latin.txt"}, "UTF-8"),
        ({"eos": "<S>"}, "vocab.txt: .* no <S>. .* model.eos=WORD"),
        ({"unk": "<eos>"}, "model.eos and model.unk are both <eos>"),
        ({"checkpoint": "none.pt"}, "model.checkpoint=none.pt: "),
    ):
        with pytest.raises(PairscaleError, match=message):
            import_model(**values)
    with pytest.raises(ConfigError, match=r"model=lstm: .* can't be imported"):
        import_run(compose("train", ["corpus=toy"]))
    save(MemTransformerLM(14, cutoffs=[6]), tmp_path / "model.pt")
    with pytest.raises(ConfigError, match=r"model.cutoffs=\[7\]: .* has \[6\]"):
        import_model(cutoffs=[7])


@pytest.mark.parametrize(("old", "whole"), [(False, False), (True, True)])
def test_the_vocabulary_of_the_transformer_xl_code_is_read(tmp_path, import_model, old, whole):
    model = randomised(MemTransformerLM(len(WORDS)))
    save(model, tmp_path / "model.pt")
    save(Corpus(Vocab(WORDS)) if whole else Vocab(WORDS), tmp_path / "cache.pt", old)
    assert_logprobs(import_model(vocabulary=f"{tmp_path}/cache.pt"), txl_logprobs(model, SEGMENTS), SEGMENTS)
    save(Corpus(Vocab(WORDS, lower_case=True)), tmp_path / "lower.pt", old)
    with pytest.raises(InputError, match="lower-cased"):
        import_model(vocabulary=f"{tmp_path}/lower.pt")
    with pytest.raises(InputError, match="must contain a Vocab"):
        import_model(vocabulary=f"{tmp_path}/model.pt")


def test_text_vocabularies_are_read_as_by_their_authors(tmp_path, import_model):
    save(RNNModel(14, 5, 6, 1), tmp_path / "model.pt")
    words = ["The", "cat", "cats", "sleep", "sleeps", ".", "does", "n't", "dog", "barks", "near", "a"]
    (tmp_path / "vocab.txt").write_text(" ".join([*words[:5], "<UNK>", *words[5:]]) + "\t<S>\n\n")
    tokenizer = load_model(import_model(eos="<S>", unk="<UNK>").model).tokenizer  # words between any white space
    assert tokenizer.tokens == ["<eos>", "<unk>", *words]
    assert tokenizer.encode("The <eos> cat <unk>") == [2, UNK, 3, UNK]
    save(MemTransformerLM(14), tmp_path / "model.pt")
    (tmp_path / "vocab.txt").write_text("\n".join([*(f" {word} 17" for word in [*WORDS, "cat"]), "", ""]))
    assert load_model(import_model(name="txl").model).tokenizer.tokens[2:] == [
        word for word in WORDS if word not in ("<eos>", "<unk>")
    ]


def test_a_run_is_imported_once_and_records_its_source(tmp_path, import_model, capsys):
    save(RNNModel(14, 5, 6, 1), tmp_path / "model.pt")
    run = import_model()
    manifest = run.read_manifest()
    assert manifest["status"] == "done"
    assert manifest["source"] == {
        "importer": "colorlessgreenRNNs",
        "checkpoint": f"{tmp_path}/model.pt",
        "checkpoint_sha256": sha256_file(tmp_path / "model.pt"),
        "vocabulary": f"{tmp_path}/vocab.txt",
        "vocabulary_sha256": sha256_file(tmp_path / "vocab.txt"),
    }
    assert manifest["digest"] == load_model(run.model).digest
    assert (manifest["vocabulary"], manifest["parameters"]) == (14, 14 * 5 + 4 * 6 * (5 + 6 + 2) + 14 * 7)
    written = run.model.weights.stat().st_mtime_ns
    assert import_model() == run
    assert run.model.weights.stat().st_mtime_ns == written
    assert "Already imported:" in capsys.readouterr().err
    save(RNNModel(14, 5, 6, 1), tmp_path / "model.pt")
    with pytest.raises(RunError, match="imported from a file with the digest"):
        import_model()


def test_an_imported_run_is_scored_and_listed_by_the_analysis(tmp_path, import_model):
    save(randomised(MemTransformerLM(14, cutoffs=[6, 9])), tmp_path / "model.pt")
    run = import_model()
    (tmp_path / "blimp").mkdir()
    row = {"sentence_good": "The cats sleep.", "sentence_bad": "The cats sleeps.", "field": "syntax"}
    row |= {"linguistics_term": "agreement", "UID": "near", "pairID": "0"}
    (tmp_path / "blimp" / "near.jsonl").write_text(json.dumps(row))
    loaded_benchmark.cache_clear()
    score_study(
        compose("eval", ["benchmark=blimp", "corpus=toy", "trainer.progress=false", *study_overrides(tmp_path)])
    )
    rows, metadata = read_scores(score_path(run.scores("blimp"), "lp"))
    assert rows["good"].item() < 0
    assert (rows["good_tokens"].item(), rows["good_unk"].item()) == (5, 0)
    assert (metadata["sample_words"], metadata["policy"]["score_eos"]) == (None, True)
    table = runs("s", folder=tmp_path / "runs").set_index("run")
    assert pd.isna(table.loc[run.path.name, "sample_words"])  # it has no place on a curve
