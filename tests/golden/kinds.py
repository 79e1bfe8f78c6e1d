"""The kinds of models whose numbers make_scores.py keeps: how they are trained, or where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from tests.support import published_models

INPUTS = Path(__file__).parent / "inputs"
TRAINED = ["corpus=local", "corpus.split.valid=0.1", "recipe.validation_words=300", "recipe.budget.epochs=2"]
ENGLISH = [*TRAINED, "corpus.name=golden", f"corpus.path={INPUTS}/text.txt", "sample.size=3k"]
CHINESE = [*TRAINED, "corpus.name=golden_zh", "corpus.reference=characters", "sample.size=1k"]
CHINESE += [f"corpus.path={INPUTS}/text_zh.txt"]
WORD = [*ENGLISH, "tokenizer=word", "tokenizer.vocab_size=900"]
COUNTED = [value for value in WORD if value != "recipe.budget.epochs=2"] + ["model=ngram"]
PIECES = ["tokenizer.vocab_size=450", "tokenizer.character_coverage=1.0"]
# Few steps with a high rate, or large initial weights: then each word of a text changes the scores of those after it.
LSTM = ["model=lstm_tiny", "model.embedding=24", "model.hidden=24", "recipe.bptt=20", "recipe.lr=0.02"]
TXL = ["model=txl_tiny", "model.layers=2", "model.d_model=24", "model.heads=2", "model.d_head=12", "model.d_inner=32"]
TXL += ["model.memory=30", "recipe.bptt=20", "model.initial_sd=0.2"]
ADAPTIVE = ["model.cutoffs=[50,200]", "model.div_val=2", "model.tied_projections=true", "recipe.budget.epochs=1"]
# A larger epsilon, as keys have biases without any gradient but noise, of which Adam makes steps of full size.
EPSILON = "recipe.eps=1e-5"
SPREAD = "model.config.initializer_range=0.2"
GPT2 = ["model=gpt2_tiny", "model.config.n_embd=24", "model.config.n_layer=2", "recipe.context=32", SPREAD, EPSILON]
NARROW = ["model.config.hidden_size=24", "model.config.num_hidden_layers=2", "recipe.context=32", EPSILON]
DEBERTA = ["model.config.num_attention_heads=4", "model.config.intermediate_size=512", "recipe=adamw_masked"]
DEBERTA += ["recipe.lr=0.002"]
MASKED = [*NARROW, SPREAD, "recipe.batch=4", "model.masking.validation_words=200"]


@dataclass(frozen=True)
class Kind:
    """A kind of model: `study` of its run, what trains it, or what it is loaded from."""

    study: str
    train: tuple[str, ...] = ()
    given: str = ""  # model=..., of a model that comes trained


def _trained(study: str, **kinds: list[str]) -> dict[str, Kind]:
    return {name: Kind(study, tuple(overrides)) for name, overrides in kinds.items()}


def _networks(study: str, common: list[str], *names: str) -> dict[str, Kind]:
    return _trained(study, **{name: [*WORD, f"model={name}_tiny", *common] for name in names})


KINDS: Mapping[str, Kind] = {
    **_trained(
        "own",
        lstm=[*WORD, *LSTM],
        lstm_untied=[*WORD, *LSTM, "model.tied=false", "model.embedding=16"],
        gru=[*WORD, "model=gru_tiny", *LSTM[1:]],
        rnn=[*WORD, "model=rnn_tiny", *LSTM[1:]],
        txl=[*WORD, *TXL],
        txl_adaptive=[*WORD, *TXL, *ADAPTIVE],
    ),
    **_trained("networks", gpt2=[*WORD, *GPT2], gpt2_bpe=[*ENGLISH, "tokenizer=bpe", *PIECES, *GPT2]),
    **_networks("networks", [*NARROW, SPREAD], "llama"),
    **_trained("networks", mamba=[*WORD, "model=mamba", "recipe=adamw", *NARROW, SPREAD]),
    **_networks("networks", [*NARROW, "model.config.word_embed_proj_dim=24", "model.config.init_std=0.2"], "opt"),
    **_networks("masked", MASKED, "bert", "roberta"),
    **_trained("masked", deberta_v2=[*WORD, "model=deberta_v2", *DEBERTA, *MASKED]),
    **_networks("masked", [*MASKED, "model.masking.causal_share=0.3"], "gpt_bert"),
    **_trained("masked", bert_unigram=[*ENGLISH, "tokenizer=unigram", *PIECES, "model=bert_tiny", *MASKED]),
    "hf_bert": Kind("masked", given="hf_masked"),
    "hf_roberta": Kind("masked", given="hf_masked"),
    **_trained(
        "others",
        lstm_whitespace=[*ENGLISH, "tokenizer=whitespace", "tokenizer.vocab_size=900", *LSTM],
        lstm_unigram=[*ENGLISH, "tokenizer=unigram", *PIECES, *LSTM],
        lstm_bpe=[*ENGLISH, "tokenizer=bpe", *PIECES, *LSTM],
    ),
    "imported_lstm": Kind("others", given="imported"),
    "imported_txl": Kind("others", given="imported"),
    "imported_txl_adaptive": Kind("others", given="imported"),
    "hf_gpt2": Kind("others", given="hf_causal"),
    "hf_llama": Kind("others", given="hf_causal"),
    **_trained("counted", ngram=[*COUNTED, "model.order=3"], ngram_open=[*COUNTED, "model.vocabulary=open"]),
    **_trained(
        "chinese",
        lstm_char=[*CHINESE, "tokenizer=char", *LSTM],
        lstm_jieba=[*CHINESE, "tokenizer=jieba", "tokenizer.vocab_size=300", *LSTM],
    ),
}
STUDIES = tuple(dict.fromkeys(kind.study for kind in KINDS.values()))
TOKENIZERS = ("lstm", "lstm_whitespace", "lstm_unigram", "lstm_bpe", "gpt2_bpe", "bert_unigram", "lstm_char",
              "lstm_jieba", "ngram_open", "imported_lstm", "hf_gpt2", "hf_llama", "hf_bert", "hf_roberta")  # fmt: skip


def write_given(name: str, folder: Path) -> list[str]:
    """Write the files of a model that comes trained, with random weights; return the values that name them."""
    folder.mkdir(parents=True)
    if name.startswith("hf_"):
        write_network(name, folder)
        return [f"model.path={folder}"]
    words = list(dict.fromkeys((INPUTS / "text.txt").read_text(encoding="utf-8").split()))[:598]
    words = ["<unk>", words[0], "<eos>", *words[1:]]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    published: Any = published_models  # has no types
    if name == "imported_lstm":
        model = published.RNNModel(len(words), 8, 12, 2)
    else:
        adaptive = {"cutoffs": (50, 200), "div": 2, "pre_norm": True, "clamp": 6, "same": True, "memory": 9}
        model = published.MemTransformerLM(len(words), **(adaptive if "adaptive" in name else {}))
    published.save(published.randomised(model, seed=3), folder / "model.pt")
    return [f"model.checkpoint={folder}/model.pt", "model.tokenizer=word"]


def write_network(name: str, folder: Path) -> None:
    """Write a model of Hugging Face with the configuration and tokenizer of inputs/NAME, and random weights."""
    config = AutoConfig.from_pretrained(INPUTS / name)
    masked = config.model_type in ("bert", "roberta")
    auto: Any = AutoModelForMaskedLM if masked else AutoModelForCausalLM
    network = auto.from_config(config)
    rng = np.random.default_rng(5)
    with torch.no_grad():
        for _, weight in sorted(network.named_parameters()):
            weight.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(weight.shape))))
    network.save_pretrained(folder)
    for file in INPUTS.joinpath(name).glob("tokenizer*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
