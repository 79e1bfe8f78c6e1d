"""Scoring of our models against a loop that reads one token at a time."""

import math

import numpy as np
import pytest
import torch

from corpora.tokenizers import EOS, UNK
from eval.config import PolicyConfig
from tests.support.random_models import LSTM, TXL, own_scorer, random_model

SENTENCES = [
    "The cats sleep near a dog .",
    "The cat sleep near a dog .",
    "Who ?",
    "A zebra sees the gnu .",
    "The cats that sees the dog that sees the cats sleep near a dog that barks .",
    "The cat sleeps .",
]
MODELS = {"lstm": LSTM, "txl": TXL}


def policy(**values):
    default = {"context": "none", "context_tokens": 4, "context_text": None, "score_eos": None, "unk": "score"}
    return PolicyConfig(**default | {"precision": "fp32"} | values)


@torch.no_grad()
def one_by_one(loaded, sentence, before, score_eos):
    """ln p of each token: the model reads one token a step, softmax written out, in double precision."""
    targets = loaded.tokenizer.encode(sentence) + ([EOS] if score_eos else [])
    state = loaded.model.initial_state(1)
    read = [*before, EOS, *targets]
    logprobs = []
    for position, token in enumerate(read[:-1]):
        hidden, state = loaded.model(torch.tensor([[token]]), state)
        logits = hidden[0, 0].double() @ loaded.model.output_weight.T.double() + loaded.model.output_bias.double()
        if position >= len(before):
            logprobs.append(float(logits[read[position + 1]]) - math.log(float(logits.exp().sum())))
    return logprobs


@pytest.mark.parametrize("batch_tokens", [1, 24, 10_000])
@pytest.mark.parametrize("kind", ["word", "char"])
@pytest.mark.parametrize("model", MODELS)
def test_equals_one_token_at_a_time(model, kind, batch_tokens):
    loaded = random_model(MODELS[model], kind)
    sentences = SENTENCES if kind == "word" else [text[:40] for text in SENTENCES]  # no longer than the memory
    scored = own_scorer(loaded, batch_tokens).score(sentences, policy())
    for sentence, found in zip(sentences, scored, strict=True):
        expected = one_by_one(loaded, sentence, [], score_eos=kind == "word")
        assert found.logprobs == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 10_000])
@pytest.mark.parametrize("model", MODELS)
def test_context_is_read_before_each_sentence(model, batch_tokens):
    loaded = random_model(MODELS[model])
    text = "The dog barks ."
    contexts = [
        (policy(context="eos", context_tokens=4), [EOS] * 4),
        (policy(context="text", context_text=text), [EOS, *loaded.tokenizer.encode(text)]),
    ]
    plain = own_scorer(loaded, batch_tokens).score(SENTENCES, policy())
    for asked, before in contexts:
        scored = own_scorer(loaded, batch_tokens).score(SENTENCES, asked)
        for sentence, found, alone in zip(SENTENCES, scored, plain, strict=True):
            assert found.logprobs == pytest.approx(one_by_one(loaded, sentence, before, True), abs=1e-5)
            assert np.abs(found.logprobs - alone.logprobs).max() > 1e-3


@pytest.mark.parametrize("model", MODELS)
def test_bf16_is_near_and_still_a_distribution(model):
    loaded = random_model(MODELS[model])
    for asked in (policy(), policy(context="eos")):
        exact = own_scorer(loaded, 100).score(SENTENCES, asked)
        asked.precision = "bf16"
        for near, far in zip(own_scorer(loaded, 100).score(SENTENCES, asked), exact, strict=True):
            assert near.logprobs == pytest.approx(far.logprobs, abs=0.3)
            assert (near.logprobs != far.logprobs).any()
            assert (near.logprobs < 0).all()


def test_spans_unknown_words_and_the_end():
    loaded = random_model(LSTM)
    (found,) = own_scorer(loaded, 100).score(["A zebra sleeps."], policy())
    assert found.spans.tolist() == [[0, 1], [2, 7], [8, 14], [14, 15], [15, 15]]
    assert found.unk.tolist() == [False, True, False, False, False]
    (found,) = own_scorer(loaded, 100).score(["A zebra sleeps."], policy(score_eos=False))
    assert len(found.logprobs) == 4


def test_sentences_that_are_one_to_the_model_score_the_same_in_any_company():
    loaded = random_model(TXL)
    sentences = ["A zebra sleeps .", *SENTENCES, "A gnu sleeps .", *SENTENCES]
    scored = own_scorer(loaded, 16).score(sentences, policy())
    assert loaded.tokenizer.encode(sentences[0]) == loaded.tokenizer.encode(sentences[7])
    assert loaded.tokenizer.encode(sentences[0])[1] == UNK
    assert np.array_equal(scored[0].logprobs, scored[7].logprobs)
    for first, second in zip(scored[1:7], scored[8:], strict=True):
        assert np.array_equal(first.logprobs, second.logprobs)


@pytest.mark.parametrize(("score_eos", "tokens"), [(True, 1), (False, 0)])
def test_an_empty_sentence_has_nothing_but_its_end(score_eos, tokens):
    loaded = random_model(LSTM)
    empty, full = own_scorer(loaded, 100).score(["", "Who ?"], policy(score_eos=score_eos))
    assert empty.logprobs.shape == (tokens,)
    assert empty.spans.shape == (tokens, 2)
    assert len(full.logprobs) == 2 + tokens
    assert own_scorer(loaded, 100).score([], policy()) == []


def test_probabilities_of_all_next_words_sum_to_one():
    loaded = random_model(LSTM)
    words = [loaded.tokenizer.token(index) for index in range(2, len(loaded.tokenizer))]
    scored = own_scorer(loaded, 100).score([f"The {word}" for word in [*words, "zebra"]], policy(score_eos=False))
    end = own_scorer(loaded, 100).score(["The"], policy(score_eos=True))[0].logprobs[1]
    assert sum(math.exp(score.logprobs[1]) for score in scored) + math.exp(end) == pytest.approx(1, abs=1e-5)
