"""Build small untrained Hugging Face models and tokenizers of every kind, for tests of scoring."""

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedTokenizerFast

from eval.config import PolicyConfig
from eval.scorers.base import Execution
from eval.scorers.pretrained import scorer_of

TEXT = ["The cats sleep near a dog .", "The cat sleeps .", "Who saw the dog that saw the naïve cat ?"] * 3
SENTENCES = [
    "The cats sleep near a dog .",
    "The cat sleep near a dog .",
    "Who ?",
    "A naïve zebra — 猫 — sees the gnu .",
    "The",
]


def policy(**values):
    default = {"context": "none", "context_tokens": 3, "context_text": None, "score_eos": None, "unk": "score"}
    return PolicyConfig(**default | {"precision": "fp32"} | values)


def byte_level(text=TEXT, vocabulary=300, special=("<|endoftext|>",)):
    """Return a tokenizer like GPT-2's. It has one symbol for begin and end, which it doesn't add to texts.

    A space belongs to the next word. If `vocabulary` is the number of bytes and symbols, there are no other tokens.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=alphabet, special_tokens=list(special), show_progress=False
    )
    tokenizer.train_from_iterator(text, trainer)
    symbols = {"bos_token": special[0], "eos_token": special[0], "unk_token": special[0]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **symbols)


def adds_bos(text=TEXT, vocabulary=60):
    """Return a tokenizer like Llama's. It puts a mark before each word, including the first, and BOS before a text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def lower_case(**symbols):
    """Return a tokenizer with lower-case words. It has no begin symbol unless `symbols` contains one."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[END]"], show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", **symbols)


LAYERS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDER = LAYERS | {"intermediate_size": 24}
ONE_SYMBOL = {"bos_token_id": 0, "eos_token_id": 0}
PADDED = ONE_SYMBOL | {"pad_token_id": 0}


def small(auto, kind, **values):
    """Return a function that makes an untrained model of this kind for a vocabulary size."""
    return lambda vocabulary: auto.from_config(AutoConfig.for_model(kind, vocab_size=vocabulary, **values))


gpt2 = small(AutoModelForCausalLM, "gpt2", n_embd=16, n_layer=2, n_head=2, n_positions=80, **ONE_SYMBOL)
llama = small(AutoModelForCausalLM, "llama", **WIDER)
cohere = small(AutoModelForCausalLM, "cohere", logit_scale=0.3, **WIDER, **PADDED)  # scales its logits
bert = small(AutoModelForMaskedLM, "bert", max_position_embeddings=80, **WIDER)
roberta = small(
    AutoModelForMaskedLM, "roberta", max_position_embeddings=80, **WIDER, **ONE_SYMBOL | {"pad_token_id": 1}
)
MORE_MODELS = {
    # This model encodes positions in its attention mask, which it builds itself.
    "bloom": small(AutoModelForCausalLM, "bloom", hidden_size=16, n_layer=2, n_head=2, **PADDED),
    # This model has no attention.
    "mamba": small(AutoModelForCausalLM, "mamba", hidden_size=16, num_hidden_layers=2, state_size=4, **PADDED),
    # The attention window is narrower than some of the sentences.
    "mistral": small(
        AutoModelForCausalLM, "mistral", head_dim=8, num_key_value_heads=1, sliding_window=4, **WIDER
    ),
    # Positions begin at 2.
    "opt": small(
        AutoModelForCausalLM, "opt", ffn_dim=24, max_position_embeddings=80, word_embed_proj_dim=16, **LAYERS,
        **ONE_SYMBOL, pad_token_id=1,
    ),
    "pythia": small(AutoModelForCausalLM, "gpt_neox", **WIDER),
}  # fmt: skip


TOKENIZERS = {"byte_level": byte_level, "adds_bos": adds_bos, "lower_case": lambda: lower_case(eos_token="[END]")}
MODELS = {"gpt2": gpt2, "llama": llama, "cohere": cohere}


def with_random_weights(model, tokenizer, seed=1):
    """Return the network that `model` makes for a tokenizer's vocabulary, with larger weights than a new network."""
    torch.manual_seed(seed)
    network = model(len(tokenizer)).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.3)
    return network


def causal_scorer(network, tokenizer, batch_tokens=100, begin=None):
    return scorer_of(network, tokenizer, "m", Execution(batch_tokens), begin=begin)


def masked_scorer(network, tokenizer, batch_tokens=100):
    return scorer_of(network, tokenizer, "m", Execution(batch_tokens), masked=True)


def word_pieces(text=TEXT, vocabulary=45):
    """Return a tokenizer like BERT's, with lower case, pieces of words, and symbols around a sentence."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(text, trainer)
    pieces = [*special, *sorted(set(tokenizer.get_vocab()).difference(special))]  # the trainer's order is random
    tokenizer.model = models.WordPiece({piece: index for index, piece in enumerate(pieces)}, unk_token="[UNK]")
    around = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]",
        cls_token="[CLS]", sep_token="[SEP]",
    )  # fmt: skip


def masked_bytes():
    """Return a tokenizer like RoBERTa's, which is based on bytes. A space belongs to the next word."""
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"mask_token": "<mask>", "pad_token": "<pad>"})
    return tokenizer


MASKED = {"bert": (bert, word_pieces), "roberta": (roberta, masked_bytes)}


# Code that comes with a model, in the style of GPT-BERT and LTG-BERT, which were written for transformers 4. It doesn't
# call post_init, initialises a missing bias, has a buffer that is in no file, and uses a weight as output embeddings.
# With `shift`, a token is predicted at the previous position (masked next-token prediction).
OWN_CODE = """
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput


class OwnConfig(PretrainedConfig):
    model_type = "own_code"

    def __init__(self, vocab_size=60, hidden_size=24, shift=0, max_position_embeddings=80, **rest):
        super().__init__(**rest)
        self.vocab_size, self.hidden_size, self.shift = vocab_size, hidden_size, shift
        self.max_position_embeddings = max_position_embeddings


class OwnForMaskedLM(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.mixing = nn.LSTM(config.hidden_size, config.hidden_size // 2, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(config.hidden_size, elementwise_affine=False)
        self.output = nn.Linear(config.hidden_size, config.vocab_size)
        self.output.weight = self.embedding.weight
        self.register_buffer("scale", torch.full((1,), 3.0), persistent=False)

    def _init_weights(self, module):
        if isinstance(module, nn.LayerNorm):
            module.bias.data.zero_()

    def get_input_embeddings(self):
        return self.embedding

    def get_output_embeddings(self):
        return self.output.weight

    def forward(self, input_ids, attention_mask=None):
        hidden = self.mixing(self.embedding(input_ids))[0]
        logits = self.scale * self.output(self.norm(hidden))
        return MaskedLMOutput(logits=torch.roll(logits, -self.config.shift, 1))
"""


def own_code(folder, shift, tokenizer):
    """Write the folder of a masked model with its own code, trained on a few sentences. Return the model.

    It predicts their tokens well, because it sees where the mask is, and knows which token follows which.
    """
    import json
    import types

    from safetensors.torch import save_file

    from eval.scorers.tokens import PLAIN_SENTENCES

    module = types.ModuleType("own_code")
    exec(compile(OWN_CODE, "modeling_own.py", "exec"), module.__dict__)
    torch.manual_seed(1)
    config = module.OwnConfig(vocab_size=len(tokenizer), shift=shift)
    model = module.OwnForMaskedLM(config)
    texts = tokenizer(list(PLAIN_SENTENCES[:5]), return_special_tokens_mask=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for step in range(60):
        loss = torch.zeros(())
        for ids, special in zip(texts["input_ids"], texts["special_tokens_mask"], strict=True):
            inputs = torch.tensor([ids])
            inside = [at for at, mark in enumerate(special) if not mark]
            hidden = inside[step % 3 :: 3]
            masked = inputs.clone()
            masked[0, hidden] = tokenizer.mask_token_id
            logits = model(masked).logits[0, [at - shift for at in hidden]]
            loss = loss + nn.functional.cross_entropy(logits, inputs[0, hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    folder.mkdir(parents=True)
    (folder / "modeling_own.py").write_text(OWN_CODE)
    config_file = {
        "model_type": "own_code", "vocab_size": len(tokenizer), "shift": shift, "architectures": ["OwnForMaskedLM"],
        "auto_map": {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForMaskedLM": "modeling_own.OwnForMaskedLM"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config_file))
    weights = {name: weight.clone() for name, weight in model.state_dict().items() if name != "output.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    return model
