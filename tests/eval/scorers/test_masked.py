"""Masked Hugging Face models against one copy of a sentence at a time."""

import math

import numpy as np
import pytest
import torch
from transformers import (
    FNetConfig,
    FNetForMaskedLM,
    FunnelConfig,
    FunnelForMaskedLM,
    MobileBertConfig,
    MobileBertForMaskedLM,
    NystromformerConfig,
    NystromformerForMaskedLM,
    ReformerConfig,
    ReformerForMaskedLM,
)

from pairscale.errors import ConfigError, InputError
from tests.support.small_pretrained import (
    MASKED,
    bert,
    byte_level,
    masked_bytes,
    masked_scorer,
    policy,
    roberta,
    with_random_weights,
    word_pieces,
)


@torch.no_grad()
def one_mask_at_a_time(network, tokenizer, sentence, pll):
    """ln p of each token from a copy of its own, all logits, softmax written out in double precision."""
    found = tokenizer(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
    ids, starts = found["input_ids"], [start for start, _ in found["offset_mapping"]]
    # These sentences have one space before each word, and a full stop may follow one at once.
    words = [(sentence[:start].count(" "), sentence[start : start + 1].isalnum()) for start in starts]
    inside = [at for at, special in enumerate(found["special_tokens_mask"]) if not special]
    logprobs = []
    for at in inside:
        copy = list(ids)
        copy[at] = tokenizer.mask_token_id
        if pll == "within_word_l2r":
            for later in [other for other in inside if other > at and words[other] == words[at]]:
                copy[later] = tokenizer.mask_token_id
        logits = network(input_ids=torch.tensor([copy])).logits[0, at].double()
        logprobs.append(float(logits[ids[at]]) - math.log(float(logits.exp().sum())))
    return logprobs


@pytest.mark.parametrize("batch_tokens", [1, 5_000])
@pytest.mark.parametrize("pll", ["original", "within_word_l2r"])
@pytest.mark.parametrize("model", MASKED)
def test_pll_equals_one_copy_at_a_time(model, pll, batch_tokens):
    network, tokenizer = MASKED[model]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    sentences = ["The cats sleep near a dog .", "Who saw the zebras ?", "The", "", "sleeps sleepy cat."]
    expected = [one_mask_at_a_time(network, tokenizer, sentence, pll) for sentence in sentences]
    scorer = masked_scorer(network, tokenizer, batch_tokens)
    for found, logprobs in zip(scorer.score(sentences, policy(pll=pll)), expected, strict=True):
        assert found.logprobs == pytest.approx(logprobs, abs=1e-4)
        assert len(found.spans) == len(found.unk) == len(logprobs)


@pytest.mark.parametrize("batch_tokens", [30, 5_000])
@pytest.mark.parametrize("pll", ["original", "within_word_l2r"])
def test_a_pair_shares_the_copy_in_which_its_word_is_hidden(pll, batch_tokens):
    network, tokenizer = MASKED["bert"]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    pair = ["the cat sees a dog .", "the cat sees the dog ."]
    read = []
    network.register_forward_pre_hook(lambda _, __, named: read.append(named["input_ids"].tolist()), with_kwargs=True)
    scorer = masked_scorer(network, tokenizer, batch_tokens)
    scorer.score(["the cat sees a wide dog ."], policy(pll=pll))  # its probes are done
    read.clear()
    good, bad = scorer.score(pair, policy(pll=pll))
    assert all(len(batch) * len(batch[0]) <= batch_tokens for batch in read)
    copies = [tuple(row) for batch in read for row in batch]
    assert len(good.logprobs) == len(bad.logprobs)
    assert len(copies) == len(set(copies)) == 2 * len(good.logprobs) - 1
    for found, sentence in zip((good, bad), pair, strict=True):
        assert found.logprobs == pytest.approx(one_mask_at_a_time(network, tokenizer, sentence, pll), abs=1e-4)


def test_the_two_kinds_of_pll_differ_within_words_only():
    tokenizer = word_pieces()
    network = with_random_weights(bert, tokenizer)
    scorer = masked_scorer(network, tokenizer, 1_000)
    sentence = "The zebras sleep ."
    one, other = (scorer.score([sentence], policy(pll=pll))[0] for pll in ("original", "within_word_l2r"))
    words = tokenizer(sentence, add_special_tokens=False).word_ids()
    last = np.asarray([at + 1 == len(words) or words[at + 1] != word for at, word in enumerate(words)])
    assert not last.all()
    assert one.logprobs[last] == pytest.approx(other.logprobs[last], abs=1e-4)
    assert (np.abs(one.logprobs - other.logprobs)[~last] > 1e-4).all()
    assert np.array_equal(scorer.score([sentence], policy())[0].logprobs, other.logprobs)


def test_a_batch_on_a_cpu_is_what_its_cache_holds():
    tokenizer = word_pieces()
    network = with_random_weights(bert, tokenizer)
    scorer = masked_scorer(network, tokenizer, 100_000)
    read = []
    network.register_forward_pre_hook(lambda _, __, named: read.append(named["input_ids"].numel()), with_kwargs=True)
    scorer.score([f"{'cat ' * count}." for count in range(50, 70)], policy())
    assert 1_900 < max(read) <= 2_048


@pytest.mark.parametrize("kind", MASKED)
def test_a_text_may_be_as_long_as_the_positions_are(kind):
    """RoBERTa's positions start after that of padding: the last ones of its table are not there."""
    network, tokenizer = MASKED[kind]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    scorer = masked_scorer(network, tokenizer, 5_000)
    assert scorer.positions == 80 - (kind == "roberta") * (network.config.pad_token_id + 1)
    around = len(tokenizer("").input_ids)
    word = "the" if kind == "bert" else "t"
    text = " ".join([word] * (scorer.positions - around)) if kind == "bert" else word * (scorer.positions - around)
    assert len(tokenizer(text).input_ids) == scorer.positions
    assert np.isfinite(scorer.score([text], policy(pll="original"))[0].logprobs).all()
    with pytest.raises(InputError, match=f"m reads {scorer.positions} tokens at most; .* has {scorer.positions + 1}"):
        scorer.score([f"{text} {word}"], policy())


def test_what_a_masked_model_cannot_do_is_one_line():
    tokenizer = word_pieces()
    scorer = masked_scorer(with_random_weights(bert, tokenizer), tokenizer, 100)
    with pytest.raises(ConfigError, match=r"policy\.context=eos: a masked model is scored on the sentence alone"):
        scorer.score(["The"], policy(context="eos"))
    with pytest.raises(ConfigError, match=r"policy\.score_eos=true: a masked model predicts no end"):
        scorer.score(["The"], policy(score_eos=True))
    with pytest.raises(InputError, match=r"m reads 80 tokens at most"):
        scorer.score(["cat " * 79], policy())
    with pytest.raises(ConfigError, match=r"has no mask token; a causal model is model=hf_causal"):
        masked_scorer(with_random_weights(bert, tokenizer), byte_level(), 100)


def mobilebert(vocabulary):
    """Its head makes logits without calling its softmax weights."""
    return MobileBertForMaskedLM(MobileBertConfig(vocab_size=vocabulary, hidden_size=32, embedding_size=16,
                                                  num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                                                  intra_bottleneck_size=16, true_hidden_size=16))  # fmt: skip


def fnet(vocabulary):
    """Its mixing of tokens takes no notice of a mask, so padding changes what it says."""
    return FNetForMaskedLM(FNetConfig(vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2,
                                      intermediate_size=24, max_position_embeddings=80))  # fmt: skip


@pytest.mark.parametrize("network", [mobilebert, fnet])
def test_heads_and_padding_of_other_kinds(network):
    tokenizer = word_pieces()
    plain = with_random_weights(network, tokenizer)
    scorer = masked_scorer(with_random_weights(network, tokenizer), tokenizer, 5_000)
    assert scorer.pads == (network is not fnet)
    sentences = ["The cats sleep near a dog .", "Who saw the zebras ?", "The"]
    with torch.no_grad():
        for sentence, found in zip(sentences, scorer.score(sentences, policy(pll="original")), strict=True):
            expected = one_mask_at_a_time(plain, tokenizer, sentence, "original")
            # MobileBERT has no layer norms: its sums are large.
            assert found.logprobs == pytest.approx(expected, abs=1e-3)


def funnel(*blocks):
    """It pools over neighbouring tokens, padding among them, in all blocks but the first."""
    return lambda vocabulary: FunnelForMaskedLM(FunnelConfig(vocab_size=vocabulary, block_sizes=blocks, d_model=16,
                                                             n_head=2, d_head=8, d_inner=24))  # fmt: skip


def nystromformer(landmarks):
    """With fewer landmarks than tokens it reads texts of 64 tokens alone. Its convolutions read padding."""
    return lambda vocabulary: NystromformerForMaskedLM(NystromformerConfig(
        vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=80, segment_means_seq_len=64, num_landmarks=landmarks))  # fmt: skip


@pytest.mark.parametrize("network", [funnel(1, 1), funnel(2, 2, 2), nystromformer(64)])
def test_models_that_mix_in_their_padding_read_texts_of_one_length_together(network):
    tokenizer = word_pieces()
    plain = with_random_weights(network, tokenizer)
    scorer = masked_scorer(with_random_weights(network, tokenizer), tokenizer, 5_000)
    assert not scorer.pads
    sentences = ["The cats sleep near a dog .", "Who saw the zebras ?", "The cat sleeps and sees the dog near a cat ."]
    for sentence, found in zip(sentences, scorer.score(sentences, policy(pll="original")), strict=True):
        assert found.logprobs == pytest.approx(one_mask_at_a_time(plain, tokenizer, sentence, "original"), abs=1e-3)


def test_a_mask_of_probability_zero_hides_no_padding():
    """The probe compared the probability of the mask alone, which some models give none at all."""

    class NoMask(FNetForMaskedLM):
        def forward(self, *arguments, **named):
            found = super().forward(*arguments, **named)
            found.logits = found.logits.index_fill(-1, torch.tensor([tokenizer.mask_token_id]), -math.inf)
            return found

    tokenizer = word_pieces()
    network = with_random_weights(lambda vocabulary: NoMask(fnet(vocabulary).config), tokenizer)
    assert not masked_scorer(network, tokenizer, 5_000).pads


def test_a_text_that_the_model_cannot_read_is_one_line():
    tokenizer = word_pieces()
    short = masked_scorer(with_random_weights(funnel(2, 2, 2), tokenizer), tokenizer, 5_000)
    with pytest.raises(InputError, match=r"m: its code fails on a text of 3 tokens \(RuntimeError: "):
        short.score(["cat"], policy())
    fixed = masked_scorer(with_random_weights(nystromformer(8), tokenizer), tokenizer, 5_000)
    with pytest.raises(InputError, match=r"m: its code fails on a text of \d+ tokens \(RuntimeError: "):
        fixed.score(["The cats sleep ."], policy())


def test_random_hashing_is_told():
    def reformer(vocabulary, **values):
        return ReformerForMaskedLM(ReformerConfig(
            vocab_size=vocabulary, hidden_size=16, attention_head_size=8, num_attention_heads=2, feed_forward_size=24,
            attn_layers=["local", "lsh"], is_decoder=False, axial_pos_embds=False, max_position_embeddings=80,
            lsh_attn_chunk_length=8, local_attn_chunk_length=8, num_buckets=4, **values))  # fmt: skip

    tokenizer = word_pieces()
    scorer = masked_scorer(with_random_weights(reformer, tokenizer), tokenizer, 5_000)
    assert len(scorer.score(["the cat ."], policy())[0].logprobs)  # within one chunk nothing is hashed
    with pytest.raises(ConfigError, match=r"m: two passes over one text of \d+ tokens differ .* hash_seed"):
        scorer.score(["the cat sees the dog near the cat that sees the dog that sleeps near a cat ."], policy())


def test_chinese_without_spaces_is_not_one_word():
    """A byte-level tokenizer takes what has no space for one word, and each character for three tokens."""
    tokenizer = masked_bytes()
    network = with_random_weights(roberta, tokenizer)
    scorer = masked_scorer(with_random_weights(roberta, tokenizer), tokenizer, 5_000)
    sentence = "猫，睡。狗！"  # the marks stand apart: what is between them is not hidden with them
    found = tokenizer(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
    ids, spans = found["input_ids"], found["offset_mapping"]
    expected = []
    with torch.no_grad():
        for at, (start, _) in enumerate(spans):
            if found["special_tokens_mask"][at]:
                continue
            copy = list(ids)
            for later in [n for n in range(at, len(ids)) if spans[n][0] == start]:
                copy[later] = tokenizer.mask_token_id
            expected.append(float(network(input_ids=torch.tensor([copy])).logits[0, at].log_softmax(-1)[ids[at]]))
    (scored,) = scorer.score([sentence], policy())
    assert scored.logprobs == pytest.approx(expected, abs=1e-4)
