"""Scores of trained models compared with a loop that reads one token at a time."""

import math

import numpy as np
import pytest
import torch

from corpora.tokenizers import EOS, UNK
from eval.scorers.next_words import Questions
from tests.support.random_models import LSTM, TXL, own_scorer, random_model
from tests.support.small_pretrained import policy

SENTENCES = [
    "The cats sleep near a dog .",
    "The cat sleep near a dog .",
    "Who ?",
    "A zebra sees the gnu .",
    "The cats that sees the dog that sees the cats sleep near a dog that barks .",
    "The cat sleeps .",
]
MODELS = {"lstm": LSTM, "txl": TXL}


@torch.no_grad()
def one_by_one(loaded, sentence, before, score_eos):
    """Return ln p of each token: the model reads one token a step, softmax written out in double precision."""
    targets = loaded.tokenizer.encode(sentence) + ([EOS] if score_eos else [])
    state = loaded.model.initial_state(1)
    sequence = [*before, EOS, *targets]
    logprobs = []
    for position, token in enumerate(sequence[:-1]):
        hidden, state = loaded.model(torch.tensor([[token]]), state)
        logits = hidden[0, 0].double() @ loaded.model.output_weight.T.double() + loaded.model.output_bias.double()
        if position >= len(before):
            logprobs.append(float(logits[sequence[position + 1]]) - math.log(float(logits.exp().sum())))
    return logprobs


@pytest.mark.parametrize("batch_tokens", [1, 24, 10_000])
@pytest.mark.parametrize("kind", ["word", "char"])
@pytest.mark.parametrize("model", MODELS)
def test_scores_equal_a_loop_over_tokens(model, kind, batch_tokens):
    loaded = random_model(MODELS[model], kind)
    sentences = SENTENCES if kind == "word" else [text[:40] for text in SENTENCES]  # no longer than the memory
    scored = own_scorer(loaded, batch_tokens).score(sentences, policy())
    for sentence, scores in zip(sentences, scored, strict=True):
        expected = one_by_one(loaded, sentence, [], score_eos=kind == "word")
        assert scores.logprobs == pytest.approx(expected, abs=1e-5)


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
    for context_policy, before in contexts:
        scored = own_scorer(loaded, batch_tokens).score(SENTENCES, context_policy)
        for sentence, scores, without_context in zip(SENTENCES, scored, plain, strict=True):
            assert scores.logprobs == pytest.approx(one_by_one(loaded, sentence, before, True), abs=1e-5)
            assert np.abs(scores.logprobs - without_context.logprobs).max() > 1e-3


@pytest.mark.parametrize("model", MODELS)
def test_scores_in_bf16_are_near_those_in_fp32(model):
    loaded = random_model(MODELS[model])
    for scoring_policy in (policy(), policy(context="eos")):
        exact = own_scorer(loaded, 100).score(SENTENCES, scoring_policy)
        scoring_policy.precision = "bf16"
        for near, far in zip(own_scorer(loaded, 100).score(SENTENCES, scoring_policy), exact, strict=True):
            assert near.logprobs == pytest.approx(far.logprobs, abs=0.3)
            assert (near.logprobs != far.logprobs).any()
            assert (near.logprobs < 0).all()


def test_spans_unknown_words_and_the_end_symbol_are_marked():
    loaded = random_model(LSTM)
    (scores,) = own_scorer(loaded, 100).score(["A zebra sleeps."], policy())
    assert scores.spans.tolist() == [[0, 1], [2, 7], [8, 14], [14, 15], [15, 15]]
    assert scores.unk.tolist() == [False, True, False, False, False]
    (scores,) = own_scorer(loaded, 100).score(["A zebra sleeps."], policy(score_eos=False))
    assert len(scores.logprobs) == 4


def test_sentences_of_equal_tokens_have_equal_scores_in_any_batch():
    loaded = random_model(TXL)
    sentences = ["A zebra sleeps .", *SENTENCES, "A gnu sleeps .", *SENTENCES]
    scored = own_scorer(loaded, 16).score(sentences, policy())
    assert loaded.tokenizer.encode(sentences[0]) == loaded.tokenizer.encode(sentences[7])
    assert loaded.tokenizer.encode(sentences[0])[1] == UNK
    assert np.array_equal(scored[0].logprobs, scored[7].logprobs)
    for first, second in zip(scored[1:7], scored[8:], strict=True):
        assert np.array_equal(first.logprobs, second.logprobs)


@pytest.mark.parametrize(("score_eos", "tokens"), [(True, 1), (False, 0)])
def test_an_empty_sentence_has_only_its_end_symbol(score_eos, tokens):
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


def test_a_candidate_without_tokens_or_with_unk_has_no_probability_and_no_rank():
    questions = Questions([], [[3], [], [4, UNK]], UNK, splits=False)
    assert questions.known.tolist() == [True, False, False]
    assert questions.tokens.tolist() == [1, 0, 2]
    assert np.isnan(questions.logprobs).tolist() == [False, True, True]
