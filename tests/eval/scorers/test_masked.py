"""Masked Hugging Face models compared with a loop over masked copies of a sentence."""

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
from tests.support.model_kinds import build, differences, tokenizer_of
from tests.support.small_pretrained import (
    MASKED,
    bert,
    byte_level,
    masked_scorer,
    policy,
    with_random_weights,
    word_pieces,
)


@torch.no_grad()
def one_mask_at_a_time(network, tokenizer, sentence, pll):
    """Return ln p of each token from its own masked copy, softmax written out in double precision."""
    encoding = tokenizer(sentence, return_offsets_mapping=True, return_special_tokens_mask=True)
    ids, starts = encoding["input_ids"], [start for start, _ in encoding["offset_mapping"]]
    # These sentences have one space before each word, and a full stop may follow one at once.
    words = [(sentence[:start].count(" "), sentence[start : start + 1].isalnum()) for start in starts]
    inside = [at for at, special in enumerate(encoding["special_tokens_mask"]) if not special]
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
def test_pll_equals_a_loop_over_masked_copies(model, pll, batch_tokens):
    network, tokenizer = MASKED[model]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    sentences = ["The", "", "sleeps sleepy cat.", "Who saw the zebras ?", "The cats sleep near a dog ."]
    sentences = sentences[: 3 if batch_tokens == 1 else 5]  # each copy alone takes long
    expected = [one_mask_at_a_time(network, tokenizer, sentence, pll) for sentence in sentences]
    scorer = masked_scorer(network, tokenizer, batch_tokens)
    for scores, logprobs in zip(scorer.score(sentences, policy(pll=pll)), expected, strict=True):
        assert scores.logprobs == pytest.approx(logprobs, abs=1e-4)
        assert len(scores.spans) == len(scores.unk) == len(logprobs)


@pytest.mark.parametrize("batch_tokens", [30, 5_000])
@pytest.mark.parametrize("pll", ["original", "within_word_l2r"])
def test_a_pair_shares_the_copy_in_which_its_different_word_is_masked(pll, batch_tokens):
    network, tokenizer = MASKED["bert"]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    pair = ["the cat sees a dog .", "the cat sees the dog ."]
    batches = []
    network.register_forward_pre_hook(
        lambda _, __, named: batches.append(named["input_ids"].tolist()), with_kwargs=True
    )
    scorer = masked_scorer(network, tokenizer, batch_tokens)
    scorer.score(["the cat sees a wide dog ."], policy(pll=pll))  # runs the probes of the model
    batches.clear()
    good, bad = scorer.score(pair, policy(pll=pll))
    assert all(len(batch) * len(batch[0]) <= batch_tokens for batch in batches)
    copies = [tuple(row) for batch in batches for row in batch]
    assert len(good.logprobs) == len(bad.logprobs)
    assert len(copies) == len(set(copies)) == 2 * len(good.logprobs) - 1
    for scores, sentence in zip((good, bad), pair, strict=True):
        assert scores.logprobs == pytest.approx(one_mask_at_a_time(network, tokenizer, sentence, pll), abs=1e-4)


@pytest.mark.parametrize("kind", MASKED)
def test_a_text_can_be_as_long_as_the_usable_positions(kind):
    """RoBERTa's positions start after that of padding, so fewer are usable than its table has."""
    network, tokenizer = MASKED[kind]
    tokenizer = tokenizer()
    network = with_random_weights(network, tokenizer)
    scorer = masked_scorer(network, tokenizer, 5_000)
    assert scorer.network.positions == 80 - (kind == "roberta") * (network.config.pad_token_id + 1)
    around, most = len(tokenizer("").input_ids), scorer.network.positions
    word = "the" if kind == "bert" else "t"
    text = " ".join([word] * (most - around)) if kind == "bert" else word * (most - around)
    assert len(tokenizer(text).input_ids) == most
    assert np.isfinite(scorer.score([text], policy(pll="original"))[0].logprobs).all()
    with pytest.raises(InputError, match=f"m can read at most {most} tokens, but .* has {most + 1}"):
        scorer.score([f"{text} {word}"], policy())


def test_unsupported_policies_and_models_raise_one_line_errors():
    tokenizer = word_pieces()
    scorer = masked_scorer(with_random_weights(bert, tokenizer), tokenizer, 100)
    with pytest.raises(ConfigError, match=r"policy\.context=eos: .*policy\.context=none"):
        scorer.score(["The"], policy(context="eos"))
    with pytest.raises(ConfigError, match=r"policy\.score_eos=true: a masked model .*false"):
        scorer.score(["The"], policy(score_eos=True))
    with pytest.raises(InputError, match=r"m can read at most 80 tokens"):
        scorer.score(["cat " * 79], policy())
    with pytest.raises(ConfigError, match=r"has no mask token\..*model=hf_causal"):
        masked_scorer(with_random_weights(bert, tokenizer), byte_level(), 100)


def mobilebert(vocabulary):
    """A model whose head does not call its softmax weights."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "intra_bottleneck_size": 16}
    config = MobileBertConfig(vocab_size=vocabulary, hidden_size=32, embedding_size=16, true_hidden_size=16, **sizes)
    return MobileBertForMaskedLM(config)


def fnet(vocabulary):
    """A model that mixes tokens without a mask, so padding changes its predictions."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 24, "max_position_embeddings": 80}
    return FNetForMaskedLM(FNetConfig(vocab_size=vocabulary, **sizes))


def funnel(*blocks):
    """A model that pools over neighbouring tokens, padding included, in all blocks but the first."""
    return lambda vocabulary: FunnelForMaskedLM(FunnelConfig(vocab_size=vocabulary, block_sizes=blocks, d_model=16,
                                                             n_head=2, d_head=8, d_inner=24))  # fmt: skip


def nystromformer(landmarks):
    """A model whose convolutions read padding; with fewer landmarks than tokens it needs texts of 64 tokens."""
    return lambda vocabulary: NystromformerForMaskedLM(NystromformerConfig(
        vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=80, segment_means_seq_len=64, num_landmarks=landmarks))  # fmt: skip


@pytest.mark.parametrize("network", [mobilebert, fnet, funnel(1, 1), funnel(2, 2, 2), nystromformer(64)])
def test_models_with_other_heads_or_affected_by_padding_equal_the_loop(network):
    tokenizer = word_pieces()
    plain = with_random_weights(network, tokenizer)
    scorer = masked_scorer(with_random_weights(network, tokenizer), tokenizer, 5_000)
    sentences = ["The cats sleep near a dog .", "Who saw the zebras ?", "The cat sleeps and sees the dog near a cat ."]
    for sentence, scores in zip(sentences, scorer.score(sentences, policy(pll="original")), strict=True):
        expected = one_mask_at_a_time(plain, tokenizer, sentence, "original")
        assert scores.logprobs == pytest.approx(expected, abs=1e-3)  # MobileBERT has no layer norms: large sums


def test_a_score_does_not_depend_on_longer_texts_beside_it():
    """The convolutions of a new ConvBERT read a little of padding: 0.0005 nats, which no probe of padding shows."""
    tokenizer = tokenizer_of("masked")
    network = build("convbert", "masked", len(tokenizer))
    assert max(differences(network, tokenizer, "masked")) < 1e-5


def test_a_text_on_which_the_model_fails_raises_a_one_line_error():
    tokenizer = word_pieces()
    short = masked_scorer(with_random_weights(funnel(2, 2, 2), tokenizer), tokenizer, 5_000)
    with pytest.raises(InputError, match=r"m: the model's own code failed on a text of 3 tokens \(RuntimeError: "):
        short.score(["cat"], policy())
    fixed = masked_scorer(with_random_weights(nystromformer(8), tokenizer), tokenizer, 5_000)
    with pytest.raises(InputError, match=r"m: the model's own code failed on a text of \d+ tokens \(RuntimeError: "):
        fixed.score(["The cats sleep ."], policy())


def test_a_model_with_random_hashing_raises_an_error():
    def reformer(vocabulary, **values):
        return ReformerForMaskedLM(ReformerConfig(
            vocab_size=vocabulary, hidden_size=16, attention_head_size=8, num_attention_heads=2, feed_forward_size=24,
            attn_layers=["local", "lsh"], is_decoder=False, axial_pos_embds=False, max_position_embeddings=80,
            lsh_attn_chunk_length=8, local_attn_chunk_length=8, num_buckets=4, **values))  # fmt: skip

    tokenizer = word_pieces()
    scorer = masked_scorer(with_random_weights(reformer, tokenizer), tokenizer, 5_000)
    assert len(scorer.score(["the cat ."], policy())[0].logprobs)  # no hashing within one chunk
    with pytest.raises(ConfigError, match=r"m: two passes over the same text of \d+ tokens differ .* hash_seed"):
        scorer.score(["the cat sees the dog near the cat that sees the dog that sleeps near a cat ."], policy())
