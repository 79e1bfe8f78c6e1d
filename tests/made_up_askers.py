"""Small causal Hugging Face models and tokenizers of different kinds, with and without chat templates."""

import math

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from eval.causal import CausalScorer
from eval.config import PolicyConfig
from eval.scores import ITEMS

TEXT = [
    "Say Yes or No .\nAnswer: Yes", "Answer: No", "Say A or B .\nA : The cats sleep\nB : The cat sleep\nAnswer: A",
    "Answer: B", "The cat sleeps near a dog .", "Is it good ? 是 否", "Who saw the dog that saw the naïve cat ?",
] * 3  # fmt: skip
PAIRS = [
    ("The cats sleep near a dog .", "The cats sleeps near a dog ."),
    ("Who saw the {sentence} ?", "Who saw the {b} ?"),  # text that looks like a placeholder
    ("The naïve zebra — 猫 .", "A zebra 猫 naïve the ."),
    ("The dog .", "The dog ."),
]


def pairs(*sentences, paradigm="p"):
    frame = pd.DataFrame(sentences or PAIRS, columns=["good", "bad"])
    frame["pair_id"] = [str(number) for number in range(len(frame))]
    return frame.assign(paradigm=paradigm, phenomenon="x").reindex(columns=list(ITEMS.names))


def policy(**values):
    default = {"context": "none", "context_tokens": 3, "context_text": None, "score_eos": None, "unk": "score"}
    return PolicyConfig(**default | {"precision": "fp32"} | values)


def byte_level(vocabulary=300, special=("<|endoftext|>", "<|user|>", "<|model|>")):
    """GPT-2: spaces belong to the word that follows, no symbol is added. With 259 tokens, nothing but bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=alphabet, special_tokens=list(special), show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    symbols = {"bos_token": special[0], "eos_token": special[0], "unk_token": special[0]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **symbols)


def adds_bos():
    """Llama: pieces with a mark before each word, the first included; it puts BOS before each text by itself."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def joins():
    """Merges over everything, so that a prompt's last character and an answer can be one token: ": Yes", ":是"."""
    vocabulary = ["<s>", "<unk>", *sorted(set("".join(TEXT)) | set(": YesNo是否")), ": Yes", ":是"]
    steps = [(":", " "), (": ", "Y"), (": Y", "e"), (": Ye", "s"), (":", "是")]
    vocabulary += [merged for pair in steps if (merged := "".join(pair)) not in vocabulary]
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=steps, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>")


def gpt2(vocabulary, seed=1):
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=vocabulary, n_positions=400, n_embd=16, n_layer=2, n_head=2)
    network = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.3)
    return network


def scorer(tokenizer, **values):
    return CausalScorer(gpt2(len(tokenizer)), tokenizer, "m", 3_000, **values)


@torch.no_grad()
def nats(network, before, ids):
    """ln p of each token: all logits of one text alone, softmax written out in double precision."""
    read = [*before, *ids]
    logits = network(input_ids=torch.tensor([read])).logits[0].double()
    return np.asarray(
        [float(logits[at - 1, read[at]]) - math.log(float(logits[at - 1].exp().sum()))
         for at in range(len(before), len(read))]
    )  # fmt: skip
