"""Build small causal Hugging Face models, and tokenizers of different kinds, for tests of prompts."""

import math

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from eval.scores.schemas import ITEMS
from tests.support import small_pretrained
from tests.support.small_pretrained import causal_scorer, small, with_random_weights

TEXT = [
    "Say Yes or No .\nAnswer: Yes", "Answer: No", "Say A or B .\nA : The cats sleep\nB : The cat sleep\nAnswer: A",
    "Answer: B", "The cat sleeps near a dog .", "Is it good ? 是 否", "Who saw the dog that saw the naïve cat ?",
] * 3  # fmt: skip
PAIRS = [
    ("The cats sleep near a dog .", "The cats sleeps near a dog ."),
    ("Who saw the {sentence} ?", "Who saw the {b} ?"),  # these texts look like placeholders
    ("The naïve zebra — 猫 .", "A zebra 猫 naïve the ."),
    ("The dog .", "The dog ."),
]


def pairs(*sentences, paradigm="p"):
    frame = pd.DataFrame(sentences or PAIRS, columns=["good", "bad"])
    frame["pair_id"] = [str(number) for number in range(len(frame))]
    return frame.assign(paradigm=paradigm, phenomenon="x").reindex(columns=list(ITEMS.names))


def byte_level(vocabulary=300):
    """Return a byte-level tokenizer. With 259 tokens, it has only bytes and its three symbols."""
    return small_pretrained.byte_level(TEXT, vocabulary, ("<|endoftext|>", "<|user|>", "<|model|>"))


def adds_bos():
    return small_pretrained.adds_bos(TEXT, 80)


def joins():
    """Return a tokenizer that can join a prompt's last character and the answer into a token (": Yes", ":是")."""
    vocabulary = ["<s>", "<unk>", *sorted(set("".join(TEXT)) | set(": YesNo是否")), ": Yes", ":是"]
    steps = [(":", " "), (": ", "Y"), (": Y", "e"), (": Ye", "s"), (":", "是")]
    vocabulary += [merged for pair in steps if (merged := "".join(pair)) not in vocabulary]
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=steps, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>")


def gpt2(vocabulary, seed=1):
    return with_random_weights(small(AutoModelForCausalLM, "gpt2", n_positions=400, n_embd=16, n_layer=2, n_head=2),
                               range(vocabulary), seed)  # fmt: skip


def scorer(tokenizer, **values):
    return causal_scorer(gpt2(len(tokenizer)), tokenizer, 3_000, **values)


@torch.no_grad()
def nats(network, before, ids):
    """Return ln p of each token in `ids` after `before`, with the softmax written out in double precision."""
    sequence = [*before, *ids]
    logits = network(input_ids=torch.tensor([sequence])).logits[0].double()
    return np.asarray(
        [float(logits[at - 1, sequence[at]]) - math.log(float(logits[at - 1].exp().sum()))
         for at in range(len(before), len(sequence))]
    )  # fmt: skip
