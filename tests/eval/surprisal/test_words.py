"""Surprisals of words, against sums over all words that a small vocabulary makes, and the formula token by token."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eval import surprisals
from eval.scorers.base import TextTooLong
from eval.scorers.predictions import spans_of_windows
from pairscale.errors import ConfigError, InputError
from tests.support.random_models import LSTM, TXL, own_scorer, random_model
from tests.support.small_pretrained import (
    MASKED,
    SENTENCES,
    bert,
    byte_level,
    causal_scorer,
    gpt2,
    masked_scorer,
    policy,
    with_random_weights,
    word_pieces,
)

LONG = " ".join(SENTENCES * 3)


def reference(network, tokenizer, text):
    """Return the surprisals (bits) of a text's words by the formula of Pimentel and Meister 2024, token by token."""
    begin = tokenizer.bos_token_id
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        lines = network(torch.tensor([[begin, *ids]])).logits[0].double().softmax(-1)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    marked = [index for index, token in enumerate(tokens) if token.startswith("Ġ")]
    ends = lines[:, [*marked, tokenizer.eos_token_id]].sum(-1).log2()
    unmarked = [index for index in range(len(tokens)) if index not in marked]
    starts = [0, *(at for at, index in enumerate(ids) if at and index in marked)]
    words = []
    for start, end in itertools.pairwise([*starts, len(ids)]):
        of_tokens = sum(math.log2(lines[at, ids[at]]) for at in range(start, end))
        before = lines[0, unmarked].sum().log2() if start == 0 else ends[start]
        words.append(float(before - of_tokens - ends[end]))
    return words


@given(st.lists(st.text("abcdeé猫.", min_size=1, max_size=5), min_size=1, max_size=4))
def test_words_have_the_surprisals_of_the_formula(words):
    network, tokenizer = MODEL
    found = surprisals(SCORER, [" ".join(words)])
    expected = reference(network, tokenizer, " ".join(words))
    assert found["surprisal"].to_numpy() == pytest.approx(expected, abs=2e-4)
    assert found["surprisal_nats"].to_numpy() == pytest.approx(np.asarray(expected) * math.log(2), abs=2e-4)
    assert list(found["word"]) == words


TOKENIZER = byte_level()
MODEL = with_random_weights(gpt2, TOKENIZER), TOKENIZER
SCORER = causal_scorer(*MODEL)


@pytest.mark.usefixtures("peers")
def test_surprisals_are_those_of_the_package_of_pimentel_and_meister(tmp_path, monkeypatch):
    """The package counts the end symbol twice among the tokens that a text can begin with: it is put right here."""
    import wordsprobability.main as package
    from wordsprobability.models.bow_lm import GPT2BaseModel

    network, tokenizer = MODEL
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)

    class Model(GPT2BaseModel):
        model_name = str(tmp_path)

        def _initialise_midword_mask(self, n_logits, vocab_masks):
            return super()._initialise_midword_mask(n_logits, vocab_masks) - vocab_masks["eos"]

    monkeypatch.setattr(package, "get_model", lambda _: Model())
    monkeypatch.setattr(package, "get_bow_symbol", lambda _: "Ġ")
    texts = ["The cats sleep near a dog.", "Who saw the zebra?", "The"]
    theirs = package._get_surprisal_per_word(texts, "gpt2", return_buggy_surprisals=True)
    ours = surprisals(SCORER, texts)
    assert list(ours["word"]) == list(theirs["word"])
    assert ours["surprisal_nats"].to_numpy() == pytest.approx(theirs["surprisal"].to_numpy(np.float64), abs=1e-5)
    assert ours["uncorrected"].to_numpy() * math.log(2) == pytest.approx(
        theirs["surprisal_buggy"].to_numpy(np.float64), abs=1e-5
    )


def test_entropy_and_rank_are_those_of_the_distribution_at_the_words_beginning():
    network, tokenizer = MODEL
    text = "The cats sleep ."
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        lines = network(torch.tensor([[tokenizer.bos_token_id, *ids]])).logits[0].double().softmax(-1)
    words = surprisals(SCORER, [text])
    at = np.cumsum([0, *words["tokens"]])[:-1]
    assert words["entropy"].to_numpy() == pytest.approx(
        [float(-(line * line.log2()).sum()) for line in lines[at]], abs=1e-4
    )
    assert list(words["rank"]) == [1 + int((lines[place] > lines[place, ids[place]]).sum()) for place in at]


@pytest.mark.parametrize("architecture", [LSTM, TXL])
@pytest.mark.parametrize("kind", ["word", "char"])
def test_our_own_models_have_the_log_probabilities_of_their_scores(architecture, kind):
    scorer = own_scorer(random_model(architecture, kind))
    scored = scorer.score(SENTENCES)
    for sentence, scores, predictions in zip(SENTENCES, scored, scorer.predictions(SENTENCES), strict=True):
        count = len(predictions.logprobs)
        assert predictions.logprobs == pytest.approx(scores.logprobs[:count], abs=1e-5)
        assert (predictions.spans == scores.spans[:count]).all(), sentence
    words = surprisals(scorer, SENTENCES)
    if kind == "word":  # a token is a word, which nothing can go on
        assert words["surprisal"].to_numpy() == pytest.approx(words["uncorrected"].to_numpy())
        assert words["unk"].sum() > 0


# Long texts


@given(st.integers(0, 50), st.integers(2, 20), st.data())
def test_windows_count_each_token_once_with_at_least_what_a_step_leaves(tokens, size, data):
    step = data.draw(st.integers(1, size))
    counted = []
    for begin, end, first in spans_of_windows(tokens, size, step):
        assert 0 <= begin <= first <= end <= tokens
        assert end - begin <= size
        assert first == 0 or first - begin >= size - step
        counted += range(first, end)
    assert counted == list(range(tokens))


def test_a_long_text_is_read_in_windows():
    """As each window would be alone; a window that holds the text changes nothing."""
    text = "The cats sleep near a dog ."
    (whole,) = SCORER.predictions([text])
    (held,) = SCORER.predictions([text], window=len(whole.logprobs), step=3)
    assert held.logprobs == pytest.approx(whole.logprobs, abs=1e-6)
    network, tokenizer = MODEL
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    (found,) = SCORER.predictions([text], window=6, step=2)
    for begin, end, first in spans_of_windows(len(ids), 6, 2):
        with torch.no_grad():
            lines = (
                network(torch.tensor([[tokenizer.bos_token_id, *ids[begin:end]]])).logits[0].double().log_softmax(-1)
            )
        expected = [float(lines[at - begin, ids[at]]) for at in range(first, end)]
        assert found.logprobs[first:end] == pytest.approx(expected, abs=1e-5)


def test_a_text_longer_than_the_model_reads_has_surprisals():
    words = surprisals(SCORER, [LONG])
    assert list(words["word"]) == LONG.split()
    assert np.isfinite(words["surprisal"]).all()
    with pytest.raises(ConfigError, match=r"surprisal\.window=100: "):
        surprisals(SCORER, [LONG], window=100)


# Words and texts


def test_words_are_those_of_white_space_or_the_users_own():
    assert list(surprisals(SCORER, ["The \t cats\nsleep ."])["word"]) == ["The", "cats", "sleep", "."]
    regions = surprisals(SCORER, [["The cats", "sleep", "near a dog ."]])
    assert list(regions["number"]) == [1, 2, 3]
    alone = surprisals(SCORER, ["The cats sleep near a dog ."])["surprisal"]
    assert regions["surprisal"].to_numpy() == pytest.approx([alone[:2].sum(), alone[2], alone[3:].sum()])


def test_texts_do_not_see_each_other():
    together = surprisals(SCORER, SENTENCES)
    for number, (_, rows) in enumerate(together.groupby("text_id", sort=False)):
        alone = surprisals(SCORER, [SENTENCES[number]])
        assert rows["surprisal"].to_numpy() == pytest.approx(alone["surprisal"].to_numpy(), abs=1e-4)


@pytest.mark.parametrize("text", ["", "  ", [], ["The", " "]])
def test_texts_without_words_are_refused(text):
    with pytest.raises(InputError, match=r"texts: text 2"):
        surprisals(SCORER, ["The cats", text])


@torch.no_grad()
# This RoBERTa's tokenizer has no symbol from which to predict the first token.
@pytest.mark.parametrize(("model", "shift"), [*((name, 0) for name in MASKED), ("bert", 1)])
def test_a_masked_model_reads_the_text_before_a_token_and_three_masks(model, shift):
    """BabyLM's pipeline (reading/evaluation_functions.py) predicts the first of three masks after the text before."""
    network, tokenizer = MASKED[model]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    text = "The naïve dog saw cats ."
    marked = tokenizer(text, return_special_tokens_mask=True)
    ids, own = marked["input_ids"], [at for at, one in enumerate(marked["special_tokens_mask"]) if not one]
    end = ids[own[-1] + 1 :]
    nats = []
    for at in own:
        read = torch.tensor([[*ids[:at], *[tokenizer.mask_token_id] * 3, *end]])
        nats.append(-float(network(input_ids=read).logits[0, at - shift].double().log_softmax(-1)[ids[at]]))
    scorer = masked_scorer(network, tokenizer)
    found = surprisals(scorer, [text], policy(pll_shift=shift))
    assert found["tokens"].sum() == len(own)
    counts = np.split(nats, np.cumsum(found["tokens"])[:-1])
    assert found["uncorrected"].tolist() == pytest.approx([of.sum() / math.log(2) for of in counts], abs=1e-4)
    # Each token from the last 3 tokens before it, as if the text began there.
    (limited,) = scorer.predictions([text], policy(pll_shift=shift), window=3)
    at = own[-1]
    read = torch.tensor([[*ids[: own[0]], *ids[at - 3 : at], *[tokenizer.mask_token_id] * 3, *end]])
    line = network(input_ids=read).logits[0, own[0] + 3 - shift].double().log_softmax(-1)
    assert limited.logprobs[-1] == pytest.approx(float(line[ids[at]]), abs=1e-4)


@pytest.mark.parametrize("pll", ["original", "within_word_l2r"])
def test_with_pll_a_masked_model_reads_the_whole_text_as_for_a_score(pll):
    tokenizer = word_pieces()
    scorer = masked_scorer(with_random_weights(bert, tokenizer), tokenizer)
    found = surprisals(scorer, ["The naïve dog saw cats ."], policy(pll=pll, pll_shift=0))
    (score,) = scorer.score(["The naïve dog saw cats ."], policy(pll=pll, pll_shift=0))
    assert found["surprisal_nats"].sum() == pytest.approx(-score.logprobs.sum(), abs=1e-4)
    with pytest.raises(TextTooLong):
        surprisals(scorer, ["The cats sleep " * 100], policy(pll=pll, pll_shift=0))
    assert len(surprisals(scorer, ["The cats sleep " * 40], policy(pll_shift=0))) == 120
