"""Models with their own code and masked next-token models, compared with a loop over masked copies."""

import json
import math

import pytest
import torch

from eval.scorers.base import Execution
from eval.scorers.pretrained import load_pretrained
from pairscale.errors import ConfigError, InputError
from tests.support.small_pretrained import own_code, policy, word_pieces
from train.models.config import PretrainedConfig

SENTENCES = ["The cats sleep near a dog .", "Who saw the zebras ?", "the"]


def config(path, **values):
    return PretrainedConfig(**{"name": "hf", "kind": "masked", "path": str(path), "dtype": "fp32"} | values)


@torch.no_grad()
def one_mask_at_a_time(model, tokenizer, sentence, shift):
    """Return ln p of each token, masked alone, read `shift` positions before it; softmax in double precision."""
    encoding = tokenizer(sentence, return_special_tokens_mask=True)
    logprobs = []
    for at, special in enumerate(encoding["special_tokens_mask"]):
        if not special:
            copy = list(encoding["input_ids"])
            copy[at] = tokenizer.mask_token_id
            logits = model(torch.tensor([copy])).logits[0, at - shift].double()
            logprobs.append(float(logits[encoding["input_ids"][at]]) - math.log(float(logits.exp().sum())))
    return logprobs


@pytest.mark.parametrize("shift", [0, 1])
def test_code_of_transformers_4_loads_and_its_shift_is_detected(shift, tmp_path):
    tokenizer = word_pieces()
    model = own_code(tmp_path / "own", shift, tokenizer)
    scorer = load_pretrained(config(tmp_path / "own", trust_remote_code=True), Execution(500))
    assert scorer.shift == shift
    for requested in (None, 0, 1):
        expected = [
            one_mask_at_a_time(model, tokenizer, text, shift if requested is None else requested) for text in SENTENCES
        ]
        for scores, logprobs in zip(
            scorer.score(SENTENCES, policy(pll="original", pll_shift=requested)), expected, strict=True
        ):
            assert scores.logprobs == pytest.approx(logprobs, abs=1e-4)


def test_the_first_token_is_predicted_even_if_the_tokenizer_adds_no_symbol_before_it(tmp_path):
    tokenizer = word_pieces()
    model = own_code(tmp_path / "own", 1, tokenizer)
    with_symbol = one_mask_at_a_time(model, tokenizer, SENTENCES[0], 1)
    bare = word_pieces()
    bare.backend_tokenizer.post_processor = None
    bare.save_pretrained(tmp_path / "own")
    scorer = load_pretrained(config(tmp_path / "own", trust_remote_code=True), Execution(500))
    scores = scorer.score(SENTENCES[:1], policy(pll="original", pll_shift=1))[0]
    ids = [tokenizer.cls_token_id, *bare(SENTENCES[0]).input_ids]
    expected = []
    with torch.no_grad():
        for at in range(1, len(ids)):
            copy = [*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]
            expected.append(float(model(torch.tensor([copy])).logits[0, at - 1].log_softmax(-1)[ids[at]]))
    assert scores.logprobs == pytest.approx(expected, abs=1e-4)
    assert len(scores.logprobs) == len(with_symbol)


def test_code_runs_only_if_trusted_and_its_errors_are_one_line(tmp_path):
    folder = tmp_path / "own"
    own_code(folder, 0, word_pieces())
    with pytest.raises(InputError, match=r"its own code.*model\.trust_remote_code=true"):
        load_pretrained(config(folder), Execution(500))
    with pytest.raises(ConfigError, match=r"a masked model \(OwnForMaskedLM\)\. Use model=hf_masked"):
        load_pretrained(config(folder, kind="causal", trust_remote_code=True), Execution(500))
    original = json.loads((folder / "config.json").read_text())
    code = (folder / "modeling_own.py").read_text()
    both = original | {"architectures": ["OwnForMaskedLM", "OwnForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(both))
    assert load_pretrained(config(folder, trust_remote_code=True), Execution(500)).masked
    broken = {"return MaskedLMOutput": "raise ZeroDivisionError('of its own')\n        return MaskedLMOutput",
              "super().__init__(config)": "super().__init__(config)\n        config.no_such_field"}  # fmt: skip
    for number, (line, fault) in enumerate(broken.items()):
        other = tmp_path / f"broken{number}"
        other.mkdir()
        for file in folder.iterdir():
            if file.is_file():
                (other / file.name).write_bytes(file.read_bytes())
        (other / "modeling_own.py").write_text(code.replace(line, fault))
        with pytest.raises(InputError, match=r"ZeroDivisionError: of its own|AttributeError: .*no_such_field"):
            load_pretrained(config(other, trust_remote_code=True), Execution(500)).score(["The cat ."], policy())
