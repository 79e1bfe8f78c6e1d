"""The words that a masked model hides, for every design of tokenizer that the library `tokenizers` can build."""

import re

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre
from transformers import PreTrainedTokenizerFast

from pairscale.errors import ConfigError
from tests.support.small_pretrained import TEXT, bert, masked_scorer, policy, with_random_weights

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NAMES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
SENTENCE = "The cats saw a dog, near the gnats."


def built(model, trainer, pre_tokenizer=None, normalizer=None, text=TEXT, **values):
    tokenizer = Tokenizer(model(unk_token="[UNK]") if model is not models.Unigram else model())
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(text, trainer(special_tokens=SPECIAL, show_progress=False, **values))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **NAMES)


def bpe(pre_tokenizer=None, normalizer=None, vocab_size=60, **values):
    return built(models.BPE, trainers.BpeTrainer, pre_tokenizer, normalizer, vocab_size=vocab_size, **values)


def byte_level(**values):
    alphabet = pre.ByteLevel.alphabet()
    return bpe(pre.ByteLevel(**values), vocab_size=280, initial_alphabet=alphabet)


def metaspace(scheme, split, unigram):
    pre_tokenizer = pre.Metaspace(prepend_scheme=scheme, split=split)
    if unigram:
        return built(models.Unigram, trainers.UnigramTrainer, pre_tokenizer, vocab_size=60, unk_token="[UNK]")
    return bpe(pre_tokenizer)


def word_pieces():
    normalizer = normalizers.BertNormalizer(lowercase=True)
    return built(models.WordPiece, trainers.WordPieceTrainer, pre.BertPreTokenizer(), normalizer, vocab_size=45)


AT_MARKS, AT_SPACES = r"\w+|[^\w\s]", r"\S+"  # a word for tokenizers that part marks from words, and for the others
DESIGNS = {
    "WordPiece": (AT_MARKS, word_pieces),
    "bytes": (AT_MARKS, lambda: byte_level(add_prefix_space=False)),
    "bytes, space before": (AT_MARKS, lambda: byte_level(add_prefix_space=True)),
    "bytes, no pattern": (AT_SPACES, lambda: byte_level(add_prefix_space=False, use_regex=False)),
    "whitespace": (AT_MARKS, lambda: bpe(pre.Whitespace())),
    "whole words": (AT_MARKS, lambda: built(models.WordLevel, trainers.WordLevelTrainer, pre.Whitespace())),
    "pattern": (AT_MARKS, lambda: bpe(pre.Split(Regex(r" ?\p{L}+| ?[^\s\p{L}]+"), "isolated"))),
    "Gemma": (AT_SPACES, lambda: bpe(pre.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "▁"))),
    "no pre-tokenizer, marked": (AT_SPACES, lambda: bpe(None, normalizers.Replace(" ", "▁"))),
    "no pre-tokenizer": (AT_SPACES, bpe),
    "digits": (AT_SPACES, lambda: bpe(pre.Digits())),
    "characters": (AT_SPACES, lambda: bpe(vocab_size=0)),
    "characters, each a word": (AT_SPACES, lambda: bpe(pre.Split(Regex("."), "isolated"))),
}
for scheme in ("always", "first", "never"):
    for split in (True, False):
        for unigram in (True, False):
            name = f"Metaspace, {scheme}, {'split' if split else 'whole'}, {'Unigram' if unigram else 'BPE'}"
            DESIGNS[name] = (AT_SPACES, lambda values=(scheme, split, unigram): metaspace(*values))


def words_of(sentence, span, pattern):
    """Return the words that a token has a character of; white space alone is of the word after it."""
    start, end = span
    words = [match.span() for match in re.finditer(pattern, sentence)]
    own = {number for number, (first, last) in enumerate(words) if first < end and start < last}
    return own or {next((number for number, (first, _) in enumerate(words) if first >= start), len(words))}


@torch.no_grad()
def copies_in_turn(network, tokenizer, sentence, pattern):
    """Return ln p of each token from a copy that hides it and what follows of its words."""
    encoding = tokenizer(sentence, return_offsets_mapping=True)
    ids, words = encoding["input_ids"], [words_of(sentence, span, pattern) for span in encoding["offset_mapping"]]
    logprobs = []
    for at, token in enumerate(ids):
        hidden = [at, *(later for later in range(at + 1, len(ids)) if words[at] & words[later])]
        copy = torch.tensor([[tokenizer.mask_token_id if n in hidden else other for n, other in enumerate(ids)]])
        logprobs.append(float(network(input_ids=copy).logits[0, at].log_softmax(-1)[token]))
    return logprobs


@pytest.mark.parametrize("design", DESIGNS)
def test_the_rest_of_a_word_is_hidden_and_no_other_token(design):
    pattern, tokenizer = DESIGNS[design]
    tokenizer = tokenizer()
    network = with_random_weights(bert, tokenizer)
    scorer = masked_scorer(network, tokenizer, 1_000)
    for sentence in (SENTENCE, "gnats", "The cat sleeps ."):
        (scores,) = scorer.score([sentence], policy())
        assert scores.logprobs == pytest.approx(copies_in_turn(network, tokenizer, sentence, pattern), abs=1e-5)


def test_the_bytes_of_a_character_are_one_word_also_behind_a_space():
    """A space and the first byte of a character may be one token."""
    text = [" 猫 猫", " 猫 睡"] * 9
    alphabet = pre.ByteLevel.alphabet()
    tokenizer = bpe(pre.ByteLevel(add_prefix_space=False), vocab_size=263, initial_alphabet=alphabet, text=text)
    sentence = "the 猫睡"
    spans = tokenizer(sentence, return_offsets_mapping=True)["offset_mapping"]
    assert any(sentence[start] == " " and end - start == 2 for start, end in spans)
    network = with_random_weights(bert, tokenizer)
    (scores,) = masked_scorer(network, tokenizer, 1_000).score([sentence], policy())
    expected = copies_in_turn(network, tokenizer, sentence, r"[a-z]+|[猫睡]")
    assert scores.logprobs == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("sentence", ["ฉันรักแมว", "the ねこがすき", "ネコ", "猫がすき"])
def test_words_that_nothing_shows_are_refused_in_one_line(sentence):
    tokenizer = metaspace("always", True, False)
    scorer = masked_scorer(with_random_weights(bert, tokenizer), tokenizer, 1_000)
    with pytest.raises(ConfigError, match=r"within_word_l2r: .* Use policy\.pll=original\.$"):
        scorer.score([sentence], policy())
    assert len(scorer.score([sentence], policy(pll="original"))[0].logprobs) > 1


def words_by_pattern():
    """Return a tokenizer that parts the words of Japanese without white space, as one with a dictionary does."""
    return bpe(pre.Split(Regex("猫|が|好き|です"), "isolated"), text=[*TEXT, "猫 が 好 き で す"])


@pytest.mark.parametrize(
    ("tokenizer", "sentence", "pattern"),
    [
        (lambda: metaspace("always", True, False), "猫 が すき です", "[^ ]+"),
        (lambda: metaspace("always", True, False), "猫 です", "[^ ]+"),
        (lambda: metaspace("always", True, False), "The ガス is", "[^ ]+"),
        (lambda: metaspace("always", True, False), "แมว ชอบ ปลา", "[^ ]+"),
        (lambda: byte_level(add_prefix_space=False, use_regex=False), "แมว ชอบ ปลา", "[^ ]+"),
        (words_by_pattern, "猫が好きです", "猫|が|好|き|です"),
    ],
)
def test_words_that_white_space_or_the_tokenizer_shows_are_hidden(tokenizer, sentence, pattern):
    tokenizer = tokenizer()
    network = with_random_weights(bert, tokenizer)
    (scores,) = masked_scorer(network, tokenizer, 1_000).score([sentence], policy())
    assert len(scores.logprobs) > len(re.findall(pattern, sentence))  # a word has two tokens
    assert scores.logprobs == pytest.approx(copies_in_turn(network, tokenizer, sentence, pattern), abs=1e-5)
