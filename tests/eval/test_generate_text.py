"""Generated text: drawn from the model's own distribution, the same for a seed; prompts, lengths and refusals."""

from collections import Counter

import pytest
import torch

from corpora.fast_tokenizers import fast_tokenizer
from eval.generate_text import run, texts
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.random_models import LSTM, TXL, random_model, simulated_run
from tests.support.small_pretrained import byte_level, gpt2, with_random_weights
from train.models.travel import of_transformers


def configured(tmp_path, *overrides):
    return compose("generate_text", [f"paths.runs={tmp_path}/runs", "corpus=toy", "study=s", *overrides])


@pytest.fixture
def study(tmp_path):
    for seed, model in enumerate((LSTM, TXL)):
        simulated_run(configured(tmp_path, f"seed={seed}"), random_model(model, seed=seed))
    return tmp_path


def test_each_run_writes_the_same_text_for_a_seed(study, capsys):
    printed = []
    for seed in (1, 1, 2):
        run(configured(study, "prompt=The cat", "count=3", f"seed={seed}", "length=5"))
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]
    lines = printed[0].splitlines()
    assert len(lines) == 2 * (1 + 3)
    assert all(line.startswith("The cat") and len(line.split()) <= 2 + 5 for line in lines[1:4] + lines[5:])


def test_words_are_drawn_with_their_probabilities(tmp_path):
    loaded = random_model(LSTM)
    model, tokenizer = of_transformers(loaded.model, loaded.config).eval(), fast_tokenizer(loaded.tokenizer)
    with torch.no_grad():
        shares = model(torch.tensor([[0]])).logits[0, -1].softmax(-1)
    count = 400
    drawn = Counter(texts(model, tokenizer, configured(tmp_path, "length=1", f"count={count}")))
    for index in range(2, len(tokenizer)):
        share = float(shares[index])
        assert drawn[tokenizer.decode([index])] / count == pytest.approx(share, abs=4 * (share / count) ** 0.5 + 0.01)
    best = tokenizer.decode([int(shares[2:].argmax()) + 2])
    for one in (["top_k=1"], ["top_p=0.001"], ["temperature=0.001"]):
        if int(shares.argmax()) > 1:
            assert set(texts(model, tokenizer, configured(tmp_path, "length=1", "count=5", *one))) == {best}


def test_a_causal_model_of_hugging_face_writes_too(tmp_path, capsys):
    tokenizer = byte_level()
    with_random_weights(gpt2, tokenizer).save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    model = ["model=hf_causal", f"model.path={tmp_path / 'gpt'}"]
    run(configured(tmp_path, *model, "prompt=The", "length=4"))
    assert capsys.readouterr().out.splitlines()[1].startswith("The")
    with pytest.raises(InputError, match="prompt: has "):
        run(configured(tmp_path, *model, f"prompt={'The ' * 100}"))


def test_refusals(study):
    for values, message in (
        (["study=null"], "study=null"),
        (["temperature=0"], "temperature=0"),
        (["top_p=1.5"], "top_p=1.5"),
        (["count=0"], "count=0"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(configured(study, *values))
    with pytest.raises(RunError, match="run=nothing: no run of study=s"):
        run(configured(study, "run=nothing"))
    for folder in (study / "runs" / "s").iterdir():
        (folder / "manifest.json").unlink()
    with pytest.raises(RunError, match="none of its models writes text"):
        run(configured(study))
