"""Causal Hugging Face models compared with plain loops over their logits, for small tokenizers of every kind."""

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_outputs import CausalLMOutput

from pairscale.errors import ConfigError, InputError
from tests.support.prompted_models import nats
from tests.support.small_pretrained import (
    MODELS,
    MORE_MODELS,
    SENTENCES,
    TOKENIZERS,
    byte_level,
    causal_scorer,
    cohere,
    gpt2,
    lower_case,
    policy,
    with_random_weights,
)


@pytest.mark.parametrize("batch_tokens", [1, 5_000])
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_scores_equal_a_loop_over_the_logits(model, tokenizer, batch_tokens):
    tokenizer = TOKENIZERS[tokenizer]()
    network = with_random_weights(MODELS[model], tokenizer)
    scorer = causal_scorer(network, tokenizer, batch_tokens)
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    text = "The dog ."
    inside = tokenizer(text, add_special_tokens=False)["input_ids"]
    for scoring_policy, before in [
        (policy(), [begin]),
        (policy(context="eos"), [begin] * 4),
        (policy(context="text", context_text=text), [begin, *inside, begin]),
    ]:
        for sentence, scores in zip(SENTENCES, scorer.score(SENTENCES, scoring_policy), strict=True):
            ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
            assert scores.logprobs == pytest.approx(nats(network, before, ids), abs=1e-4)
            assert len(scores.spans) == len(scores.unk) == len(ids)


@pytest.mark.parametrize("model", MORE_MODELS)
def test_models_with_every_kind_of_attention_equal_the_loop(model):
    tokenizer = byte_level()
    network = with_random_weights(MORE_MODELS[model], tokenizer)
    scorer = causal_scorer(network, tokenizer, 5_000)
    assert scorer.model.reads_trees == (model not in ("bloom", "mamba"))  # which follow no mask or positions
    for sentence, scores in zip(SENTENCES, scorer.score(SENTENCES, policy()), strict=True):
        ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        assert scores.logprobs == pytest.approx(nats(network, [tokenizer.eos_token_id], ids), abs=1e-4)


def untied(vocabulary, **values):
    """A model with an untied head whose padding, begin and end are one symbol: new weights, a zero row for it."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    symbols = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0)
    torch.manual_seed(1)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(
        **sizes | symbols | {"vocab_size": vocabulary, "num_key_value_heads": 2, "tie_word_embeddings": False} | values
    )).eval()  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        {"model_type": "granite", "logits_scaling": 8.0},
        {"model_type": "cohere", "logit_scale": 0.1},
        {"model_type": "gemma2", "final_logit_softcapping": 0.1, "head_dim": 16},
        {"model_type": "llama"},
    ],
)
def test_scales_and_caps_of_logits_are_kept_where_padding_is_the_begin_symbol(values, tie, dtype):
    tokenizer = byte_level()
    network = untied(len(tokenizer), tie_word_embeddings=tie, **values)
    with torch.no_grad():
        network.get_output_embeddings().weight[1:].mul_(50)  # so that the largest logits are far apart
    scorer = causal_scorer(network.to(dtype), tokenizer, 5_000)
    for sentence, scores in zip(SENTENCES, scorer.score(SENTENCES, policy()), strict=True):
        expected = nats(network, [0], tokenizer(sentence, add_special_tokens=False)["input_ids"])
        assert scores.logprobs == pytest.approx(expected, abs=1e-5 if dtype == torch.float32 else 0.15)
    assert (scorer.model.head is None) == (values["model_type"] != "llama")


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_spans_cover_the_characters_of_the_sentence_in_order(tokenizer):
    tokenizer = TOKENIZERS[tokenizer]()
    (scores,) = causal_scorer(with_random_weights(gpt2, tokenizer), tokenizer, 100).score(
        ["The cats sleep ."], policy()
    )
    covered = {at for start, end in scores.spans.tolist() for at in range(start, end)}
    letters = {at for at, letter in enumerate("The cats sleep .") if letter != " "}
    assert letters <= covered
    assert (np.diff(scores.spans[:, 0]) >= 0).all()


def test_unknown_words_the_end_symbol_and_empty_texts_are_marked():
    tokenizer = lower_case(eos_token="[END]")
    scorer = causal_scorer(with_random_weights(gpt2, tokenizer), tokenizer, 100)
    (scores,) = scorer.score(["The ZEBRA sleeps"], policy(score_eos=True))
    assert scores.unk.tolist() == [False, True, False, False]
    assert scores.spans.tolist() == [[0, 3], [4, 9], [10, 16], [16, 16]]
    tokenizer = byte_level()  # one symbol for <unk>, begin and end, which is in no text
    scorer = causal_scorer(with_random_weights(gpt2, tokenizer), tokenizer, 100)
    assert not scorer.score(["zebra"], policy(score_eos=True))[0].unk.any()
    assert [len(one.logprobs) for one in scorer.score([""], policy())] == [0]
    with pytest.raises(InputError, match=r"m can read at most 80 tokens, but '猫+a' has 100"):
        scorer.score(["猫" * 33 + "a"], policy())


def test_a_model_without_a_begin_symbol_needs_model_begin():
    tokenizer = lower_case()
    network = with_random_weights(gpt2, tokenizer)
    with pytest.raises(ConfigError, match=r"no BOS and no EOS.*model\.begin=TOKEN"):
        causal_scorer(network, tokenizer, 100)
    with pytest.raises(ConfigError, match=r"model\.begin=\[BEGIN\]: m has no such token"):
        causal_scorer(network, tokenizer, 100, begin="[BEGIN]")
    scorer = causal_scorer(network, tokenizer, 100, begin="[END]")
    (scores,) = scorer.score(["The cat"], policy())
    ids = tokenizer("The cat")["input_ids"]
    assert scores.logprobs == pytest.approx(nats(network, [1], ids), abs=1e-5)
    with pytest.raises(ConfigError, match=r"policy\.score_eos=true: the tokenizer of m has no <eos>.*false"):
        scorer.score(["The cat"], policy(score_eos=True))


def test_a_bidirectional_model_is_rejected_as_causal():
    tokenizer = byte_level()
    bidirectional = with_random_weights(gpt2, tokenizer)
    for block in bidirectional.transformer.h:
        block.attn.is_causal = False
    bidirectional.config._attn_implementation = "eager"
    bidirectional.transformer.h[0].attn.forward = lambda hidden_states, **_: (hidden_states.flip(1), None)
    with pytest.raises(ConfigError, match=r"m: .*isn't a causal model.* later tokens"):
        causal_scorer(bidirectional, tokenizer, 100)


def test_a_causal_model_whose_large_logits_are_rounded_otherwise_is_accepted():
    """Context changes no prediction; the log-probabilities of the second text are some steps of float32 off."""
    tokenizer = byte_level()
    network = with_random_weights(gpt2, tokenizer)

    def logits(input_ids, **_):
        values = torch.full((*input_ids.shape, len(tokenizer)), -60.0)
        values[..., 0] = 0
        values[1, :, 1:] += 4e-6 * 6  # steps of float32 between 32 and 64 are 4e-6
        return CausalLMOutput(logits=values)

    network.forward = logits
    causal_scorer(network, tokenizer, 100)


def test_a_head_that_is_not_plain_reads_the_places_alone_that_are_needed():
    tokenizer = byte_level()
    network = with_random_weights(cohere, tokenizer)
    scorer = causal_scorer(network, tokenizer, 100)
    assert scorer.model.head is None
    tokens, rows, columns = torch.arange(24).view(4, 6), torch.tensor([0, 3]), torch.tensor([5, 2])
    with torch.no_grad():
        expected = network(input_ids=tokens).logits[rows, columns].log_softmax(-1)
        scorer.model.logprobs_at(tokens, rows, columns)
        read = []
        network.lm_head.register_forward_hook(lambda _, inputs, product: read.append(product[..., 0].numel()))
        torch.testing.assert_close(scorer.model.logprobs_at(tokens, rows, columns), expected, rtol=0, atol=1e-5)
    assert read == [2]
