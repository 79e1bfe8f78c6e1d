"""Scores after a context, compared with whole sentences, minicons, and a loop that follows BabyLM's definition."""

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerBase

from pairscale.errors import InputError
from tests.support.small_pretrained import (
    MASKED,
    MODELS,
    TOKENIZERS,
    bert,
    byte_level,
    causal_scorer,
    gpt2,
    masked_scorer,
    policy,
    with_random_weights,
    word_pieces,
)

ITEMS = [
    ("The cats", " sleep near a dog ."),
    ("The cats", " saw a naïve dog ."),
    ("Who saw the dog that saw the cat ?", " The cat sleeps ."),
    ("The ca", "ts sleep ."),  # in the middle of a word
    ("Who ?", " 猫 sees"),
    ("", "The cat sleeps ."),
]


@pytest.mark.parametrize("eos", [False, None])
@pytest.mark.parametrize(("model", "tokenizer"), [*zip(MODELS, TOKENIZERS, strict=True)])
def test_causal_scores_after_a_context_are_those_of_the_end_of_the_text(model, tokenizer, eos):
    tokens = TOKENIZERS[tokenizer]()
    scorer = causal_scorer(with_random_weights(MODELS[model], tokens), tokens)
    texts, starts = [context + rest for context, rest in ITEMS], [len(context) for context, _ in ITEMS]
    settings = policy(score_eos=eos)
    for text, start, whole, after in zip(
        texts, starts, scorer.score(texts, settings), scorer.score(texts, settings, starts), strict=True
    ):
        counted = (whole.spans[:, 1] > start) | (whole.spans[:, 0] >= start)
        np.testing.assert_allclose(after.logprobs, whole.logprobs[counted], atol=1e-5)
        assert after.spans.tolist() == whole.spans[counted].tolist()
        assert after.unk.tolist() == whole.unk[counted].tolist()
        assert after.ids.tolist() == whole.ids[counted].tolist()
        assert len(after.ids) < len(whole.ids) or not start, text


def test_a_text_is_scored_from_each_start_it_is_asked_for():
    tokens = byte_level()
    scorer = causal_scorer(with_random_weights(gpt2, tokens), tokens)
    text = "The cats sleep ."
    sums = [score.logprobs.sum() for score in scorer.score([text] * 4, policy(), [8, 0, 3, 8])]
    assert sums[0] == sums[3] > sums[2] > sums[1]


@torch.no_grad()
def official(network, tokenizer, context, option, shift=0):
    """Return BabyLM's score: ln p of each token that ends after the context, hidden alone; no special tokens."""
    encoding = tokenizer(context + option, return_offsets_mapping=True)
    ids, total = encoding["input_ids"], 0.0
    for at, (_, end) in enumerate(encoding["offset_mapping"]):
        if end > len(context):
            hidden = torch.tensor(
                [[tokenizer.mask_token_id if place == at else token for place, token in enumerate(ids)]]
            )
            logprobs = network(input_ids=hidden).logits[0, at - shift].double().log_softmax(-1)
            total += float(logprobs[ids[at]])
    return total


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("model", MASKED)
def test_masked_scores_after_a_context_are_those_of_babylm(model, shift):
    network, tokenizer = MASKED[model]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    scorer = masked_scorer(network, tokenizer)
    # A byte tokenizer without symbols gives a masked next-token model nothing to predict a first token from.
    items = [item for item in ITEMS if item[0] or not shift or model == "bert"]
    texts, starts = [context + rest for context, rest in items], [len(context) for context, _ in items]
    scores = scorer.score(texts, policy(pll="original", pll_shift=shift), starts)
    expected = [official(network, tokenizer, *item, shift) for item in items]
    assert [score.logprobs.sum() for score in scores] == pytest.approx(expected, abs=1e-4)


def test_only_tokens_after_the_context_are_hidden(monkeypatch):
    tokenizer = word_pieces()
    scorer = masked_scorer(with_random_weights(bert, tokenizer), tokenizer)
    read = []
    copies = scorer._copies
    monkeypatch.setattr(scorer, "_copies", lambda ids, at: read.extend(np.stack(ids).tolist()) or copies(ids, at))
    context, option = "The cats sleep near", " a dog ."
    (score,) = scorer.score([context + option], policy(pll="original", pll_shift=0), [len(context)])
    last = len(tokenizer(context, add_special_tokens=False)["input_ids"])
    assert len(read) == len(score.logprobs) == len(tokenizer(option, add_special_tokens=False)["input_ids"])
    assert all(tokenizer.mask_token_id not in ids[: last + 1] for ids in read)


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize("pll", ["original", "within_word_l2r"])
def test_conditional_scores_of_minicons(pll, monkeypatch):
    from minicons.scorer import MaskedLMScorer

    # minicons 0.3.39 uses a name that transformers 5 has dropped.
    monkeypatch.setattr(PreTrainedTokenizerBase, "batch_encode_plus", PreTrainedTokenizerBase.__call__, raising=False)
    tokenizer = word_pieces()
    network = with_random_weights(bert, tokenizer)
    theirs = MaskedLMScorer(network, "cpu", tokenizer=tokenizer)
    items = [(context, rest.strip()) for context, rest in ITEMS[:3]]
    sums = theirs.conditional_score(
        *map(list, zip(*items, strict=True)), reduction=lambda values: values.sum().item(), PLL_metric=pll
    )
    texts, starts = [f"{context} {rest}" for context, rest in items], [len(context) for context, _ in items]
    ours = masked_scorer(network, tokenizer).score(texts, policy(pll=pll, pll_shift=0), starts)
    assert [score.logprobs.sum() for score in ours] == pytest.approx(sums, abs=1e-4)


def test_texts_that_are_too_long_are_named():
    tokens = byte_level()
    scorer = causal_scorer(with_random_weights(gpt2, tokens), tokens)
    with pytest.raises(InputError, match="can read at most 80 tokens"):
        scorer.score(["The cats " * 60 + "sleep"], policy(), [500])
