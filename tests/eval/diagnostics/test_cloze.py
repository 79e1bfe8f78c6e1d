"""Predicted next words compared with plain loops over logits, for small models and tokenizers of every kind."""

import math
import re

import numpy as np
import pytest
import torch

import eval.scorers.base
from corpora.tokenizers import EOS
from eval.scorers.next_words import hidden_words
from eval.scorers.tokens import HubTokens, OurTokens, is_word
from pairscale.errors import ConfigError, InputError
from tests.support.random_models import LSTM, TXL, own_scorer, random_model
from tests.support.small_pretrained import (
    MASKED,
    MODELS,
    TOKENIZERS,
    byte_level,
    causal_scorer,
    lower_case,
    masked_scorer,
    policy,
    with_random_weights,
)

CONTEXTS = ["The cats sleep near a ", "Who saw the", "The cats sleep near a", "A dog that sees the “naïve” cats"]
CANDIDATES = [["dog", "sleeps", "zebra"], ["dog", "cats"], ["cat", "dogcat"], ["barks", "sleepy", "cats"]]


def log_softmax(logits):
    """Return ln p (V,), written out in double precision."""
    logits = logits.double()
    return logits - math.log(float(logits.exp().sum()))


@torch.no_grad()
def own_logprobs(scorer, ids):
    model = scorer.model.model
    hidden, _ = model(torch.tensor([[EOS, *ids]]), model.initial_state(1))
    return log_softmax(hidden[0, -1] @ model.output_weight.T + model.output_bias)


@torch.no_grad()
def causal_logprobs(network, ids):
    return log_softmax(network(input_ids=torch.tensor([ids])).logits[0, -1])


def marked_words(tokenizer, mark):
    """Return the tokens that begin with the mark of a word and a letter."""
    words = {}
    for token, index in tokenizer.get_vocab().items():
        text = tokenizer.convert_tokens_to_string([token]).strip()
        special = index in tokenizer.all_special_ids
        if token.startswith(mark) and text[:1].isalpha() and "\ufffd" not in text and not special:  # half a character
            words[index] = text
    assert words
    return words


def expected_rank(line, words, span, logprob):
    """Return 1 + the number of more probable whole words; the first token's own word excludes the candidate."""
    better = 0
    for word in words:
        probability = math.exp(float(line[word]))
        if len(span) > 1 and word == span[0]:
            probability -= math.exp(logprob)
        better += probability > math.exp(logprob) + 1e-12 and float(line[word]) > logprob + 1e-6
    return 1 + better


def check_left_to_right(answers, cut, words, texts, unknown, logprobs_after):
    """Check answers; `cut` returns the tokens of a context and a candidate, `line_of` ln p after some tokens."""
    for context, candidates, answer in zip(CONTEXTS, CANDIDATES, answers, strict=True):
        for place, candidate in enumerate(candidates):
            prefix, span = cut(context.rstrip(), candidate)
            assert answer.tokens[place] == len(span)
            if unknown in span:
                assert math.isnan(answer.logprobs[place])
                assert answer.ranks[place] == 0
                continue
            logprob = sum(float(logprobs_after([*prefix, *span[:at]])[token]) for at, token in enumerate(span))
            assert answer.logprobs[place] == pytest.approx(logprob, abs=1e-4)
            assert answer.ranks[place] == expected_rank(logprobs_after(prefix), words, span, logprob)
        line = logprobs_after(prefix)
        best = sorted(words, key=lambda word: -float(line[word]))[:3]
        assert answer.words == [texts(word) for word in best]
        assert answer.word_logprobs == pytest.approx([float(line[word]) for word in best], abs=1e-4)


@pytest.mark.parametrize("batch_tokens", [1, 5_000])
@pytest.mark.parametrize("config", [LSTM, TXL], ids=["lstm", "txl"])
@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_trained_models_equal_a_plain_loop(kind, config, batch_tokens):
    loaded = random_model(config) if kind == "word" else random_model(config, "bpe", vocab_size=300)
    scorer = own_scorer(loaded, batch_tokens)
    tokenizer = loaded.tokenizer

    def cut(context, candidate):
        context, whole = tokenizer.encode(context), tokenizer.encode(f"{context} {candidate}")
        assert whole[: len(context)] == context
        return context, whole[len(context) :]

    begin = "" if kind == "word" else "▁"
    words = [
        index for index in range(2, len(tokenizer))
        if tokenizer.token(index).startswith(begin) and tokenizer.token(index).removeprefix(begin)[:1].isalnum()
    ]  # fmt: skip
    assert len(words) > 10
    answers = scorer.next_words(CONTEXTS, CANDIDATES, 3, policy())
    unknown = 1 if kind == "word" else None
    check_left_to_right(
        answers, cut, words, lambda index: tokenizer.token(index).removeprefix(begin), unknown,
        lambda ids: own_logprobs(scorer, ids),
    )  # fmt: skip


@pytest.mark.parametrize("batch_tokens", [1, 5_000])
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_causal_models_equal_a_plain_loop(model, tokenizer, batch_tokens):
    mark = {"byte_level": "Ġ", "adds_bos": "▁", "lower_case": ""}[tokenizer]
    tokenizer = TOKENIZERS[tokenizer]()
    network = with_random_weights(MODELS[model], tokenizer)
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    words = marked_words(tokenizer, mark)

    def cut(context, candidate):
        context, whole = (
            tokenizer.encode(text, add_special_tokens=False) for text in (context, f"{context} {candidate}")
        )
        assert whole[: len(context)] == context
        return [begin, *context], whole[len(context) :]

    scorer = causal_scorer(network, tokenizer, batch_tokens)
    unknown = tokenizer.unk_token_id
    answers = scorer.next_words(CONTEXTS, CANDIDATES, 3, policy())
    check_left_to_right(answers, cut, words, words.get, unknown, lambda ids: causal_logprobs(network, ids))


@pytest.mark.parametrize("kind", ["eos", "text"])
def test_a_context_can_follow_eos_or_a_text(kind):
    tokenizer = byte_level()
    network = with_random_weights(MODELS["gpt2"], tokenizer)
    causal = causal_scorer(network, tokenizer, 100)
    trained = own_scorer(random_model(LSTM), 100)
    following = policy(context=kind, **({"context_text": "Who saw the dog ?"} if kind == "text" else {}))
    inside = tokenizer("Who saw the dog ?")["input_ids"]
    before = [0, 0, 0, 0] if kind == "eos" else [0, *inside, 0]
    (answer,) = causal.next_words(["The cat"], [["sleeps"]], 1, following)
    ids = tokenizer.encode("The cat sleeps", add_special_tokens=False)
    start = len(tokenizer.encode("The cat", add_special_tokens=False))
    lines = [causal_logprobs(network, [*before, *ids[:at]]) for at in range(start, len(ids))]
    logprob = sum(float(line[ids[start + at]]) for at, line in enumerate(lines))
    assert answer.logprobs[0] == pytest.approx(logprob, abs=1e-4)
    (answer,) = trained.next_words(["The cat"], [["sleeps"]], 1, following)
    encoded = trained.tokens.tokenizer.encode("The cat sleeps")
    inside = [EOS] * 2 if kind == "eos" else trained.tokens.tokenizer.encode("Who saw the dog ?")
    line = own_logprobs(trained, [*inside, EOS, *encoded[:-1]])
    assert answer.logprobs[0] == pytest.approx(float(line[encoded[-1]]), abs=1e-4)


@torch.no_grad()
def masked_logprobs(network, ids, positions):
    logits = network(input_ids=torch.tensor([ids])).logits[0]
    return [log_softmax(logits[position]) for position in positions]


@pytest.mark.parametrize("batch_tokens", [1, 5_000])
@pytest.mark.parametrize("pll", [None, "original"])
@pytest.mark.parametrize("model", MASKED)
def test_masked_models_equal_a_loop_over_masked_copies(model, pll, batch_tokens):
    network, tokenizer = MASKED[model]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    mask, unknown = tokenizer.mask_token_id, tokenizer.unk_token_id
    words = marked_words(tokenizer, "" if model == "bert" else "Ġ")
    contexts, candidates = CONTEXTS[:3], CANDIDATES[:3]
    scorer = masked_scorer(network, tokenizer, batch_tokens)
    answers = scorer.next_words(contexts, candidates, 3, policy(pll=pll))
    several = 0
    for context, choices, answer in zip(contexts, candidates, answers, strict=True):
        context = context.rstrip()
        start = len(tokenizer.encode(context, add_special_tokens=False))
        for place, candidate in enumerate(choices):
            ids = tokenizer.encode(f"{context} {candidate} .")
            inside = tokenizer.encode(f"{context} {candidate}", add_special_tokens=False)
            first = start + (model == "bert")  # after [CLS]
            last = first + len(inside) - start
            span = ids[first:last]
            assert answer.tokens[place] == len(span)
            (line,) = masked_logprobs(network, [*ids[:first], mask, *ids[last:]], [first])
            if unknown in span and model == "bert":
                assert math.isnan(answer.logprobs[place])
                continue
            several += len(span) > 1
            logprob = 0.0
            for at, token in enumerate(span):
                hidden = [mask] * (len(span) - at) if pll is None else [mask, *span[at + 1 :]]
                (piece,) = masked_logprobs(network, [*ids[:first], *span[:at], *hidden, *ids[last:]], [first + at])
                logprob += float(piece[token])
            assert answer.logprobs[place] == pytest.approx(logprob, abs=1e-4)
            assert answer.ranks[place] == 1 + sum(float(line[word]) > logprob + 1e-6 for word in words)
        best = sorted(words, key=lambda word: -float(line[word]))[:3]
        assert answer.words == [words[word] for word in best]
    assert several > 1


def test_probabilities_and_ranks_are_as_calculated_by_hand():
    """The model predicts the same after every context: .4, .3, .2 and .1 for four words, nearly 0 for others."""
    loaded = random_model(LSTM)
    probabilities = {"dog": 0.4, "cats": 0.3, ".": 0.2, "sleeps": 0.1}
    with torch.no_grad():
        loaded.model.untied.zero_()
        loaded.model.output_bias.fill_(-60.0)
        for word, probability in probabilities.items():
            loaded.model.output_bias[loaded.tokenizer.ids[word]] = math.log(probability)
    candidates = ["dog", "sleeps", "gnu", "cats"]
    (answer,) = own_scorer(loaded, 100).next_words(["Who saw a "], [candidates], 2, policy())
    assert np.exp(answer.logprobs[[0, 1, 3]]) == pytest.approx([0.4, 0.1, 0.3])
    assert math.isnan(answer.logprobs[2])
    assert answer.ranks.tolist() == [1, 3, 0, 2]  # the full stop is no word
    assert answer.words == ["dog", "cats"]


@pytest.mark.parametrize(("first", "second", "rank"), [(0.3, 0.6, 1), (0.5, 0.4, 2)])
def test_the_first_token_of_a_candidate_goes_before_it_only_with_what_other_words_have_of_it(first, second, rank):
    """p(candidate) is .18 or .2, which leaves .12 or .3 of its first token, itself a word, to other words."""
    loaded = random_model(LSTM, "bpe", vocab_size=300)
    tokens = [loaded.tokenizer.token(index) for index in range(len(loaded.tokenizer))]
    words, pieces = ([token for token in tokens if re.fullmatch(form, token)] for form in ("▁[a-z]+", "[a-z]+"))
    both = ((one[1:] + other, [tokens.index(one), tokens.index(other)]) for one in words for other in pieces)
    candidate, span = next(pair for pair in both if loaded.tokenizer.encode(pair[0]) == pair[1])
    with torch.no_grad():
        loaded.model.untied.zero_()
        loaded.model.output_bias.fill_(-60.0)
        loaded.model.output_bias[[EOS, *span]] = torch.tensor([1 - first - second, first, second]).log()
    (answer,) = own_scorer(loaded, 100).next_words(["Who saw a "], [[candidate]], 2, policy())
    assert np.exp(answer.logprobs) == pytest.approx([first * second])
    assert answer.ranks.tolist() == [rank]


def test_a_masked_candidate_ends_before_the_full_stop_also_if_a_token_includes_the_space_before_it():
    tokenizer, words = random_model(LSTM, "bpe", vocab_size=300).tokenizer, ["dog", "cats", "sleeps"]
    tokens = OurTokens(tokenizer, "", masked=True)
    readings = hidden_words([("Who saw a", word) for word in words], tokens, "original", lambda text, ids: None)
    assert readings.tokens.tolist() == [len(tokenizer.encode(word)) for word in words]


def test_equal_contexts_are_read_once_in_bounded_memory(monkeypatch):
    scorer = own_scorer(random_model(LSTM, "bpe", vocab_size=300), 50)
    plain = scorer.next_words(CONTEXTS, CANDIDATES, 3, policy())
    tokenizer, model = scorer.tokens.tokenizer, scorer.model.model
    rows, all_logprobs = [], model.all_logprobs
    monkeypatch.setattr(eval.scorers.base, "CHUNK_BYTES", 4 * len(tokenizer) * 3)
    monkeypatch.setattr(model, "all_logprobs", lambda hidden: rows.append(len(hidden)) or all_logprobs(hidden))
    bounded = scorer.next_words(CONTEXTS * 50, CANDIDATES * 50, 3, policy())
    longest = max(len(tokenizer.encode(f" {word}")) for words in CANDIDATES for word in words)
    assert max(rows) <= max(3, longest)
    assert sum(rows) < 4 * sum(len(words) for words in CANDIDATES)
    for one, other in zip(plain * 50, bounded, strict=True):
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5, equal_nan=True)
        assert one.ranks.tolist() == other.ranks.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("dog", True), ("U.S.", True), ("four-year-old", True), ("o'clock", True), ("2", True), ("naïve", True),
     ("'s", False), ("n't", False), (",", False), ("", False), ("[unused1]", False), ("_", False), ("a b", False)],
)  # fmt: skip
def test_words_are_distinguished_from_other_tokens(text, expected):
    assert is_word(text) is expected


def test_words_and_contexts_that_cannot_be_used_are_refused():
    with pytest.raises(ConfigError, match=r"m: no token of this model is a whole word"):
        own_scorer(random_model(LSTM, "char"), 100).next_words(["The"], [["dog"]], 1, policy())
    tokenizer = lower_case(eos_token="[END]")
    words = HubTokens(tokenizer, "m", len(tokenizer)).words()
    assert "dog" in words.values()
    assert not {"[END]", "[UNK]", "."} & set(words.values())
    assert max(HubTokens(tokenizer, "m", 5).words()) < 5
    network, tokenizer = MASKED["bert"]
    tokenizer = tokenizer()
    masked = masked_scorer(with_random_weights(network, tokenizer), tokenizer, 100)
    with pytest.raises(ConfigError, match=r"policy\.context=eos: masked models"):
        masked.next_words(["The"], [["dog"]], 1, policy(context="eos"))
    with pytest.raises(InputError, match=r"m can read at most 80 tokens, but .* has 84"):
        masked.next_words(["cat " * 80], [["cat"]], 1, policy())
