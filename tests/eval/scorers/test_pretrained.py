"""Loading pretrained models and their revisions, and what cannot be loaded."""

import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split
from transformers import BertConfig, BertForMaskedLM, BertModel, XLMConfig, XLMWithLMHeadModel

from eval.config import PretrainedConfig
from eval.scorers.base import Execution
from eval.scorers.hf_tokenizers import check_tokenizer, encoded, score_settings
from eval.scorers.hub import weights_digest
from eval.scorers.load import load_scorer
from eval.scorers.pretrained import load_pretrained, revisions
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.small_pretrained import (
    SENTENCES,
    byte_level,
    causal_scorer,
    gpt2,
    policy,
    with_random_weights,
    word_pieces,
)


@pytest.fixture
def saved(tmp_path):
    """A folder as `save_pretrained` leaves it."""
    tokenizer = byte_level()
    with_random_weights(gpt2, tokenizer).save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    return tmp_path / "gpt"


def config(path, **values):
    default = {"name": "hf", "kind": "causal", "path": str(path), "dtype": "fp32"}
    return PretrainedConfig(**default | values)


def test_a_saved_model_scores_as_the_one_in_memory(saved):
    tokenizer = byte_level()
    memory = causal_scorer(with_random_weights(gpt2, tokenizer), tokenizer, 100)
    for scorer in (load_pretrained(config(saved), Execution(100)), load_scorer(saved)):
        assert (scorer.digest, scorer.sample_words) == (memory.digest, None)
        for one, other in zip(scorer.score(SENTENCES, policy()), memory.score(SENTENCES, policy()), strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_what_cannot_be_loaded_is_one_line(saved, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"model\.path=\./nowhere: no such folder"):
        load_pretrained(config("./nowhere"), Execution(100))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"no network; for a local copy give model\.path=FOLDER"):
        load_pretrained(config("nobody/nothing"), Execution(100))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match=r"load_in_4bit=true: needs an NVIDIA GPU"):
            load_pretrained(config(saved, load_in_4bit=True), Execution(100))
    masked = tmp_path / "bert"
    shutil.copytree(saved, masked)
    bert = BertConfig(vocab_size=300, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    BertForMaskedLM(bert).save_pretrained(masked)
    with pytest.raises(ConfigError, match=r"a masked model \(BertForMaskedLM\); give model=hf_masked"):
        load_pretrained(config(masked), Execution(100))
    with pytest.raises(ConfigError, match=r"a causal model \(GPT2LMHeadModel\); give model=hf_causal"):
        load_pretrained(config(saved, kind="masked"), Execution(100))
    headless = tmp_path / "headless"
    shutil.copytree(masked, headless)
    BertModel(bert).save_pretrained(headless)
    with pytest.raises(InputError, match=r"its weights lack cls\.predictions\..*, which a masked model needs"):
        load_pretrained(config(headless, kind="masked"), Execution(100))
    weights = saved / "model.safetensors"
    torch.save(with_random_weights(gpt2, byte_level()).state_dict(), saved / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(InputError, match=r"only there as a pickle \(pytorch_model\.bin\).*allow_pickle=true"):
        load_pretrained(config(saved), Execution(100))
    assert load_pretrained(config(saved, allow_pickle=True), Execution(100)).score(["The"], policy())


def bare(folder, tmp_path, name="bare"):
    """A copy of a model's folder without its tokenizer, as a Trainer that was given none leaves it."""
    other = tmp_path / name
    other.mkdir(parents=True)
    for file in folder.iterdir():
        if file.is_file() and not file.name.startswith("tokenizer"):
            shutil.copy(file, other)
    return other


def test_a_model_without_its_tokenizer_is_refused_or_takes_the_one_above(saved, tmp_path):
    """transformers 5 makes one up, of one symbol: every sentence was empty, and all accuracies 0.0."""
    lone = bare(saved, tmp_path)
    with pytest.raises(InputError, match=r"bare: comes without its tokenizer \(no tokenizer\.json in it"):
        load_pretrained(config(lone), Execution(100))
    own, parent = load_pretrained(config(saved), Execution(100)), bare(saved, saved, "checkpoint-3")
    below = load_pretrained(config(parent), Execution(100))
    assert (own.tokenizer_path, below.tokenizer_path) == (None, str(saved.resolve()))
    assert below.tokenizer_digest == own.tokenizer_digest
    for one, other in zip(below.score(SENTENCES), own.score(SENTENCES), strict=True):
        assert one.logprobs.tolist() == other.logprobs.tolist()


def test_a_tokenizer_that_reads_nothing_is_refused(saved):
    simulated = transformers.GPT2Tokenizer()
    assert simulated("The cats sleep.").input_ids == []
    simulated.save_pretrained(saved)
    with pytest.raises(InputError, match=r"its tokenizer \(1 tokens\) reads no letter of a plain sentence"):
        load_pretrained(config(saved), Execution(100))


def test_weights_and_tokenizers_that_do_not_fit_are_one_line(saved, tmp_path):
    larger = byte_level()
    larger.add_tokens(["zebra"])
    larger.save_pretrained(saved)
    scorer = load_pretrained(config(saved), Execution(100))
    known = scorer.vocabulary
    assert scorer.score(["The cat sees a dog ."])  # a token that no sentence holds does no harm
    with pytest.raises(InputError, match=rf"knows {known} tokens, and 'zebra' in 'Two zebras' is number {known} of"):
        scorer.score(["Two zebras"])
    described = json.loads((saved / "config.json").read_text())
    for change, told in {
        "n_embd": (8, r"do not fit its config\.json: transformer\.h\.0\..* is .*, not .* and \d+ more"),
        "n_layer": ("x", r"cannot be loaded \("),
        "n_head": (-2, r"cannot be loaded|fails on a text|do not fit"),
        "vocab_size": (10**12, r"cannot be loaded \(|do not fit"),
        "hidden_size": (-16, r"cannot be loaded \(|do not fit"),
    }.items():
        (saved / "config.json").write_text(json.dumps(described | {change: told[0]}))
        with pytest.raises(InputError, match=told[1]):
            load_pretrained(config(saved), Execution(100))
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    (saved / "config.json").write_text(deep)
    with pytest.raises(InputError, match=r"cannot be loaded \("):
        load_pretrained(config(saved), Execution(100))
    (saved / "config.json").write_text(json.dumps(described))
    weights = load_file(saved / "model.safetensors")
    weights["transformer.h.1.ln_1.bias"][3] = float("nan")
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RunError, match=r"gpt: its weights hold infinity or NaN \(in transformer\.h\.1\.ln_1\.bias\)"):
        load_pretrained(config(saved), Execution(100))


def test_an_index_of_weights_outside_of_the_folder_is_refused(saved):
    weights = saved / "model.safetensors"
    names = load_file(weights)
    weights.rename(saved.parent / "outside.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "../outside.safetensors")}
    (saved / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"index\.json names a file outside of the folder: \.\./outside\.safetensors"):
        load_pretrained(config(saved), Execution(100))


def test_a_pickle_that_holds_more_than_weights_is_refused(saved):
    torch.save({"x": shutil.copy}, saved / "pytorch_model.bin")
    (saved / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"gpt: cannot be loaded \("):
        load_pretrained(config(saved, allow_pickle=True), Execution(100))


def test_a_class_of_both_kinds_is_neither_refused_for_the_other(tmp_path):
    """XLM has one class: each kind named the other."""
    tokenizer = word_pieces()
    torch.manual_seed(1)
    described = {"vocab_size": len(tokenizer), "emb_dim": 16, "n_layers": 1, "n_heads": 2, "pad_index": 0}
    XLMWithLMHeadModel(XLMConfig(**described, use_lang_emb=False)).save_pretrained(tmp_path / "xlm")
    tokenizer.save_pretrained(tmp_path / "xlm")
    assert load_pretrained(config(tmp_path / "xlm", kind="masked"), Execution(100)).masked
    with pytest.raises(ConfigError, match=r"no causal model: .* give model=hf_masked"):
        load_pretrained(config(tmp_path / "xlm", begin="[CLS]"), Execution(100))


def test_its_run_is_named_by_the_model_alone(tmp_path):
    from train.runs.identity import run_id

    names = {
        run_id(compose("eval", ["model=hf_causal", "model.path=org/gpt", *more]))
        for more in ([], ["seed=2"], ["sample.size=2M"], ["model.revision=step1000"], ["model.dtype=bf16"])
    }
    assert len(names) == 3
    assert {name.rpartition("-")[0] for name in names} == {"hf_causal-gpt", "hf_causal-gpt-step1000"}


@pytest.fixture
def checkpoints(tmp_path):
    """A folder with a model of its own at each of three steps of training, as the Trainer leaves it."""
    tokenizer = byte_level()
    for step in (1, 2, 10):
        folder = tmp_path / "gpt" / f"checkpoint-{step}"
        torch.manual_seed(step)
        gpt2(len(tokenizer)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    (tmp_path / "gpt" / "logs").mkdir()
    return tmp_path / "gpt"


def composed(*overrides):
    return compose("eval", ["study=s", "model=hf_causal", *overrides]).model


def test_revisions_by_name_and_pattern_go_by_step(checkpoints):
    asked = composed(f"model.path={checkpoints}", "model.revisions=['checkpoint-*']", "model.tokens_per_step=1000")
    found = revisions(asked)
    assert [one.revision for one in found] == ["checkpoint-1", "checkpoint-2", "checkpoint-10"]
    assert [(one.step, one.tokens) for one in found] == [(1, 1000), (2, 2000), (10, 10_000)]
    named = composed(f"model.path={checkpoints}", "model.revisions=[checkpoint-10,checkpoint-2]")
    assert [(one.revision, one.tokens) for one in revisions(named)] == [("checkpoint-2", None), ("checkpoint-10", None)]
    alone = composed(f"model.path={checkpoints}/checkpoint-1")
    assert revisions(alone) == [alone]
    digests = {load_pretrained(one, Execution(100)).digest for one in found}
    assert len(digests) == 3
    torch.manual_seed(2)
    assert load_pretrained(found[1], Execution(100)).digest == weights_digest(gpt2(len(byte_level())))


def test_the_step_is_read_as_the_families_write_it():
    steps = {"step1000": 1000, "stage1-step42-tokens5B": 42, "checkpoint-7": 7, "main": None}
    assert {name: composed("model.path=x", f"model.revision={name}").step for name in steps} == steps


def test_revisions_that_are_not_there_are_one_line(checkpoints, monkeypatch):
    with pytest.raises(InputError, match=r"model\.revisions=step\*: no such revision .* there are checkpoint-1, "):
        revisions(composed(f"model.path={checkpoints}", "model.revisions=['step*']"))
    with pytest.raises(InputError, match=r"checkpoint-3: no such folder"):
        load_pretrained(composed(f"model.path={checkpoints}", "model.revision=checkpoint-3"), Execution(100))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"model\.path=no/such: .*(network|offline)"):
        revisions(composed("model.path=no/such", "model.revisions=['step*']"))
    with pytest.raises(ConfigError, match=r"give one of them"):
        composed("model.path=x", "model.revision=a", "model.revisions=[b]")
    with pytest.raises(ConfigError, match=r"model\.revision_pattern=\\d\+: must have one group"):
        composed("model.path=x", "model.revision_pattern='\\d+'")


def test_a_pattern_that_backtracks_without_end_is_one_line(capfd):
    """Oniguruma gives up after ten million steps; the library panics, which is no Exception, and Rust reports it."""
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.pre_tokenizer = Split(Regex("(a+)+$"), "isolated")
    check_tokenizer(tokenizer, "m")  # plain sentences have no such words
    with pytest.raises(InputError, match=r"a pattern of its tokenizer.json gives up on one of 2 texts \(Onig: .*aaaa"):
        list(encoded(tokenizer, ["a cat", "a" * 40 + " d"]))
    assert capfd.readouterr().err == ""


def test_text_that_is_cut_as_special_tokens_are_is_among_the_settings():
    tokenizer = byte_level()
    model = with_random_weights(gpt2, tokenizer)
    assert "split_special_tokens" not in score_settings(model, tokenizer)  # as in files of older code
    tokenizer.split_special_tokens = True
    assert score_settings(model, tokenizer)["split_special_tokens"] is True
