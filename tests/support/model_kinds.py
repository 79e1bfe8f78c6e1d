"""Build small untrained models of transformers' causal and masked kinds, and score texts with them in a plain loop."""

from functools import partial

import numpy as np
import torch
import transformers
from tokenizers import processors
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.support.small_pretrained import byte_level, causal_scorer, masked_scorer, policy

SENTENCES = ["The cats sleep near a dog .", "The cat sleep near a dog .", "Who ?"]

# Values for configuration fields with these names, for all models.
SIZES = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "emb_dim": 32, "embedding_size": 32,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "num_attention_heads": 4, "n_head": 4,
    "n_heads": 4, "num_key_value_heads": 4, "head_dim": 8, "intermediate_size": 48, "ffn_dim": 48, "n_inner": 48,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "d_inner": 48, "ffn_hidden_size": 48, "num_experts": 4,
    "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 320, "n_positions": 320, "n_ctx": 320,
    "max_seq_len": 320, "state_size": 4, "type_vocab_size": 2, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0,
    "use_cache": False, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
    "qk_head_dim": 16, "v_head_dim": 8, "rotary_dim": 8, "attention_hidden_size": 64,
}  # fmt: skip
# Fields that change a kind's logits, with values that have a large effect. An untied head has a zero row for padding.
LOGITS = {"logits_scaling": 8.0, "logit_scale": 0.3, "final_logit_softcapping": 5.0}

# Kinds that the scorer doesn't support, and its error messages.
REFUSED = {("causal", "xlnet"): "isn't a causal model"}
# Kinds whose logits change slightly (in nats) with the number of following tokens. The loop reads one more token.
INEXACT = {"prophetnet": 1e-3}


def build(kind, task, vocabulary, **values):
    """Return a small model of a kind. `values` override the configuration fields that the kind has."""
    config = CONFIG_MAPPING[kind](**({"block_sizes": [1, 1]} if kind == "funnel" else {}))
    _shrink(config, {"vocab_size": vocabulary, **SIZES, **values})
    for switch in filter(partial(hasattr, config), ("is_decoder", "causal")):  # for kinds that can also be encoders
        setattr(config, switch, task == "causal")
    auto = transformers.AutoModelForCausalLM if task == "causal" else transformers.AutoModelForMaskedLM
    torch.manual_seed(1)
    return auto.from_config(config).eval()


def _shrink(config, values):
    known = set(config.to_dict()) | set(config.attribute_map)
    for name, value in values.items():  # in order, because some fields have two of these names
        if name in known:
            setattr(config, name, value)
    for part in vars(config).values():
        if isinstance(part, transformers.PreTrainedConfig):
            _shrink(part, values)


def spread(network):
    """Draw larger weights than a new network has, so that each token matters. Keep the old ones if they cause NaN."""
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.1)
        text = torch.arange(60)[None]
        if not network(input_ids=text, attention_mask=torch.ones_like(text)).logits.isfinite().any(-1).all():
            network.load_state_dict(before)
    return network


def tokenizer_of(task):
    """Return a tokenizer whose begin symbol is also used for padding and, in a masked task, around each text."""
    tokenizer = byte_level(special=("<|endoftext|>", "<mask>")) if task == "masked" else byte_level()
    tokenizer.pad_token = tokenizer.bos_token
    if task == "masked":
        tokenizer.mask_token = "<mask>"
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<|endoftext|> $A <|endoftext|>", special_tokens=[("<|endoftext|>", tokenizer.bos_token_id)]
        )
    return tokenizer


@torch.no_grad()
def plain_loop(network, tokenizer, task, sentence):
    """Return ln p of each token (n,), from the network's logits for a single text or masked copy at a time."""
    ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    around = [tokenizer.bos_token_id]

    def logits(text):
        text = torch.tensor([text])
        return network(input_ids=text, attention_mask=torch.ones_like(text)).logits[0].float()

    if task == "causal":
        rows = logits(around + ids)[:-1].log_softmax(-1)
        return rows[torch.arange(len(ids)), ids].double().numpy()
    logprobs = []
    for at in range(len(ids)):
        copy = [*around, *ids[:at], tokenizer.mask_token_id, *ids[at + 1 :], *around]
        logprobs.append(float(logits(copy)[at + 1].log_softmax(-1)[ids[at]]))
    return np.asarray(logprobs)


def differences(network, tokenizer, task):
    """Return the largest differences in a token's score, in nats, from the plain loop and from scoring texts alone."""
    scorer = (causal_scorer if task == "causal" else masked_scorer)(network, tokenizer, 5_000)
    scoring = policy(pll="original", pll_shift=0) if task == "masked" else policy()
    together = [one.logprobs for one in scorer.score(SENTENCES, scoring)]
    alone = [scorer.score([sentence], scoring)[0].logprobs for sentence in SENTENCES]
    expected = [plain_loop(network, tokenizer, task, sentence) for sentence in SENTENCES]
    return tuple(
        max(float(np.abs(one - other).max()) for one, other in zip(together, others, strict=True))
        for others in (expected, alone)
    )


def worst_difference(kind, task):
    """Return a kind's largest difference, for new weights with an untied head and larger ones with the default head.

    Raises the scorer's error if it doesn't support the kind.
    """
    tokenizer = tokenizer_of(task)
    new = build(kind, task, len(tokenizer), **LOGITS, tie_word_embeddings=False)
    far = spread(build(kind, task, len(tokenizer), **LOGITS))
    return max(*differences(new, tokenizer, task), *differences(far, tokenizer, task))
