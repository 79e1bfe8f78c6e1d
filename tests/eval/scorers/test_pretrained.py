"""Loading of pretrained models and their revisions, and errors for those that cannot be loaded."""

import dataclasses
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertModel, XLMConfig, XLMWithLMHeadModel

from eval.__main__ import score_pretrained
from eval.scorers.base import Execution
from eval.scorers.load import load_scorer
from eval.scorers.network import weights_digest
from eval.scorers.pretrained import load_pretrained
from eval.scorers.tokens import HubTokens, score_settings
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
from train.models.config import PretrainedConfig
from train.models.pretrained import revisions


@pytest.fixture
def model_folder(tmp_path):
    """Folder of a model written by `save_pretrained`."""
    tokenizer = byte_level()
    with_random_weights(gpt2, tokenizer).save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    return tmp_path / "gpt"


def config(path, **values):
    default = {"name": "hf", "kind": "causal", "path": str(path), "dtype": "fp32"}
    return PretrainedConfig(**default | values)


def load(path, **values):
    return load_pretrained(config(path, **values), Execution(100))


def test_a_saved_model_scores_as_the_one_in_memory(model_folder):
    tokenizer = byte_level()
    memory = causal_scorer(with_random_weights(gpt2, tokenizer), tokenizer, 100)
    for scorer in (load(model_folder), load_scorer(model_folder)):
        assert (scorer.digest, scorer.sample_words) == (memory.digest, None)
        for one, other in zip(scorer.score(SENTENCES, policy()), memory.score(SENTENCES, policy()), strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def as_pickle(folder):
    (folder / "model.safetensors").unlink()
    torch.save(with_random_weights(gpt2, byte_level()).state_dict(), folder / "pytorch_model.bin")


def as_other_pickle(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"x": shutil.copy}, folder / "pytorch_model.bin")


def masked_model(of):
    def write(folder):
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        of(BertConfig(vocab_size=300, **sizes)).save_pretrained(folder)

    return write


def both_kinds(folder):
    """XLM has one class for causal and masked models; the two errors would refer to each other."""
    tokenizer = word_pieces()
    sizes = {"vocab_size": len(tokenizer), "emb_dim": 16, "n_layers": 1, "n_heads": 2, "pad_index": 0}
    XLMWithLMHeadModel(XLMConfig(**sizes, use_lang_emb=False)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def empty_tokenizer(folder):
    transformers.GPT2Tokenizer().save_pretrained(folder)


def not_a_number(folder):
    weights = load_file(folder / "model.safetensors")
    weights["transformer.h.1.ln_1.bias"][3] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def weights_outside(folder):
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "../outside.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def nested(folder):
    (folder / "config.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)


def config_with(**values):
    def change(folder):
        original = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(original | values))

    return change


CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="of a machine without a GPU")


@pytest.mark.parametrize(
    ("damage", "values", "message"),
    [
        pytest.param(None, {"load_in_4bit": True}, r"load_in_4bit=true needs an NVIDIA GPU", marks=CUDA),
        (None, {"kind": "masked"}, r"a causal model \(GPT2LMHeadModel\).*model=hf_causal"),
        (masked_model(BertForMaskedLM), {}, r"a masked model \(BertForMaskedLM\).*model=hf_masked"),
        (masked_model(BertModel), {"kind": "masked"}, r"the weights cls\.predictions\..* are missing"),
        (both_kinds, {"begin": "[CLS]"}, r"isn't a causal model.* model=hf_masked"),
        (as_pickle, {}, r"pickle \(pytorch_model\.bin\).*allow_pickle=true"),
        (as_other_pickle, {"allow_pickle": True}, r"gpt: the model can't be loaded \("),
        (empty_tokenizer, {}, r"tokenizer \(1 tokens\).*tokenizer\.json"),
        (not_a_number, {}, r"gpt: the weights transformer\.h\.1\.ln_1\.bias contain NaN or infinite values"),
        (weights_outside, {}, r"index\.json refers to \.\./outside\.safetensors, which is outside"),
        (nested, {}, r"can't be loaded"),
        (config_with(n_embd=8), {}, r"don't fit config\.json\. .*transformer\.h\.0\..* and \d+ more"),
        (config_with(n_layer="x"), {}, r"can't be loaded \("),
        (config_with(n_head=-2), {}, r"can't be loaded|failed on a text|don't fit"),
        (config_with(vocab_size=10**12), {}, r"can't be loaded \(|don't fit"),
    ],
)
def test_models_that_cannot_be_loaded_raise_one_line_errors(model_folder, damage, values, message):
    if damage is not None:
        damage(model_folder)
    with pytest.raises((ConfigError, InputError, RunError), match=message) as caught:
        load(model_folder, **values)
    assert "\n" not in str(caught.value)


def test_models_that_are_elsewhere_raise_one_line_errors():
    with pytest.raises(InputError, match=r"model\.path=\./nowhere: this folder"):
        load("./nowhere")
    with pytest.raises(InputError, match=r"no network.*model\.path=FOLDER"):
        load("nobody/nothing")


def test_a_pickle_of_weights_and_a_class_for_both_kinds_can_be_loaded(model_folder, tmp_path):
    as_pickle(model_folder)
    assert load(model_folder, allow_pickle=True).score(["The"], policy())
    both_kinds(tmp_path / "xlm")
    assert load(tmp_path / "xlm", kind="masked").masked


def test_a_token_that_the_model_lacks_is_refused_where_it_occurs(model_folder):
    larger = byte_level()
    larger.add_tokens(["zebra"])
    larger.save_pretrained(model_folder)
    scorer = load(model_folder)
    assert scorer.score(["The cat sees a dog ."])  # an extra token that occurs in no sentence does not matter
    with pytest.raises(InputError, match=rf"{scorer.vocabulary} tokens, but 'zebra' in 'Two zebras' has the id"):
        scorer.score(["Two zebras"])


def bare(folder, tmp_path, name="bare"):
    """Copy a model's folder without its tokenizer, as a Trainer without one writes it; return the copy."""
    other = tmp_path / name
    other.mkdir(parents=True)
    for file in folder.iterdir():
        if file.is_file() and not file.name.startswith("tokenizer"):
            shutil.copy(file, other)
    return other


def test_a_model_without_a_tokenizer_uses_that_of_the_parent_folder_or_raises_an_error(model_folder, tmp_path):
    """transformers 5 would invent one of one symbol: every sentence would be empty, and all accuracies 0.0."""
    without_tokenizer = bare(model_folder, tmp_path)
    with pytest.raises(InputError, match=r"bare: .*no tokenizer .*save_pretrained\(FOLDER\)"):
        load(without_tokenizer)
    own, below = load(model_folder), load(bare(model_folder, model_folder, "checkpoint-3"))
    assert (own.tokenizer_path, below.tokenizer_path) == (None, str(model_folder.resolve()))
    assert below.tokenizer_digest == own.tokenizer_digest
    for one, other in zip(below.score(SENTENCES), own.score(SENTENCES), strict=True):
        assert one.logprobs.tolist() == other.logprobs.tolist()


def test_the_run_of_a_pretrained_model_is_named_by_the_model_alone(tmp_path):
    from train.config import run_id

    names = {
        run_id(compose("eval", ["model=hf_causal", "model.path=org/gpt", *more]))
        for more in ([], ["seed=2"], ["sample.size=2M"], ["model.revision=step1000"], ["model.dtype=bf16"])
    }
    assert len(names) == 3
    assert {name.rpartition("-")[0] for name in names} == {"hf_causal-gpt", "hf_causal-gpt-step1000"}


@pytest.fixture
def checkpoints(tmp_path):
    """Folder with different models at three steps of training, as the Trainer writes it."""
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


def test_revisions_by_name_or_pattern_are_sorted_by_step(checkpoints):
    models_by_pattern = composed(
        f"model.path={checkpoints}", "model.revisions=['checkpoint-*']", "model.tokens_per_step=1000"
    )
    configs = revisions(models_by_pattern)
    assert [one.revision for one in configs] == ["checkpoint-1", "checkpoint-2", "checkpoint-10"]
    assert [(one.step, one.tokens) for one in configs] == [(1, 1000), (2, 2000), (10, 10_000)]
    named = composed(f"model.path={checkpoints}", "model.revisions=[checkpoint-10,checkpoint-2]")
    assert [(one.revision, one.tokens) for one in revisions(named)] == [("checkpoint-2", None), ("checkpoint-10", None)]
    single = composed(f"model.path={checkpoints}/checkpoint-1")
    assert revisions(single) == [single]
    digests = {load_pretrained(one, Execution(100)).digest for one in configs}
    assert len(digests) == 3
    torch.manual_seed(2)
    assert load_pretrained(configs[1], Execution(100)).digest == weights_digest(gpt2(len(byte_level())))


def cut_weights(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])


def remove_begin(folder):
    """Leave a tokenizer that a causal model cannot begin a sentence with: a ConfigError."""
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    kept = {name: value for name, value in settings.items() if name not in ("bos_token", "eos_token")}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (cut_weights, InputError, r"model\.revision=checkpoint-2: the model can't be loaded"),
        (remove_begin, ConfigError, r"no BOS and no EOS.*model\.begin=TOKEN"),
    ],
)
def test_a_damaged_revision_is_named_and_the_others_are_scored(checkpoints, tmp_path, capsys, damage, error, message):
    damage(checkpoints / "checkpoint-2")
    config = compose("eval", [
        "study=s", f"paths.runs={tmp_path / 'runs'}", "model=hf_causal", f"model.path={checkpoints}",
        "model.revisions=['checkpoint-*']", "benchmark=toy", "benchmark.per_paradigm=2", "trainer.progress=false",
    ])  # fmt: skip
    with pytest.raises(RunError, match=r"gpt: 1 of 3 revisions could not be scored"):
        score_pretrained([config])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Not scored: ")]
    assert "checkpoint-2" in line
    scored = {path.parts[-4] for path in (tmp_path / "runs").rglob("lp.parquet")}
    assert len(scored) == 2
    assert not [name for name in scored if "checkpoint-2" in name]
    alone = dataclasses.replace(config, model=dataclasses.replace(config.model, revisions=["checkpoint-2"]))
    with pytest.raises(error, match=message):
        score_pretrained([alone])
    with pytest.raises(ConfigError, match=r"model\.revisions: .*model\.revision=NAME"):
        load_pretrained(config.model, Execution(100))


def test_missing_revisions_raise_one_line_errors(checkpoints):
    with pytest.raises(InputError, match=r"model\.revisions=step\*: no revision .* checkpoint-1, "):
        revisions(composed(f"model.path={checkpoints}", "model.revisions=['step*']"))
    with pytest.raises(InputError, match=r"checkpoint-3: this folder doesn't exist"):
        load_pretrained(composed(f"model.path={checkpoints}", "model.revision=checkpoint-3"), Execution(100))
    with pytest.raises(InputError, match=r"model\.path=no/such: .*(network|offline)"):
        revisions(composed("model.path=no/such", "model.revisions=['step*']"))
    with pytest.raises(ConfigError, match=r"set only one of them"):
        composed("model.path=x", "model.revision=a", "model.revisions=[b]")
    with pytest.raises(ConfigError, match=r"model\.revision_pattern=\\d\+: .*must have exactly one group"):
        composed("model.path=x", "model.revision_pattern='\\d+'")


def test_the_step_is_parsed_from_names_of_revisions():
    steps = {"step1000": 1000, "stage1-step42-tokens5B": 42, "checkpoint-7": 7, "main": None}
    assert {name: composed("model.path=x", f"model.revision={name}").step for name in steps} == steps


def test_split_special_tokens_is_recorded_in_the_settings():
    tokenizer = byte_level()
    model = with_random_weights(gpt2, tokenizer)
    tokens = HubTokens(tokenizer, "m", len(tokenizer))
    assert "split_special_tokens" not in score_settings(model, tokens, masked=False)
    tokenizer.split_special_tokens = True
    assert score_settings(model, tokens, masked=False)["split_special_tokens"] is True
