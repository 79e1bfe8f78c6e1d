"""Hugging Face models against a plain loop over their own logits, with small tokenizers of every kind."""

import math
import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BloomConfig,
    BloomForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from conf import compose
from corpora.errors import ConfigError, InputError
from eval.config import PolicyConfig, PretrainedConfig
from eval.pretrained import CausalScorer, MaskedScorer, load_pretrained, revisions, weights_digest
from eval.scorers import load_scorer

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


def byte_level():
    """GPT-2: one symbol for begin and end, which it does not add; spaces belong to the word that follows."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>"
    )


def adds_bos():
    """Llama: pieces with a mark before each word, the first included; it puts BOS before each text by itself."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def lower_case(**symbols):
    """Words in lower case, without a begin symbol unless `symbols` names one."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[END]"], show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", **symbols)


def gpt2(vocabulary):
    return GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_embd=16, n_layer=2, n_head=2, n_positions=80,
                                      bos_token_id=0, eos_token_id=0))  # fmt: skip


def llama(vocabulary):
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=24,
                                        num_hidden_layers=2, num_attention_heads=2))  # fmt: skip


def cohere(vocabulary):
    """Its logits are scaled after the softmax weights."""
    return CohereForCausalLM(CohereConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=24, logit_scale=0.3,
                                          num_hidden_layers=2, num_attention_heads=2, bos_token_id=0, eos_token_id=0,
                                          pad_token_id=0))  # fmt: skip


def bloom(vocabulary):
    """Its positions are in the mask of attention, which it makes itself."""
    return BloomForCausalLM(BloomConfig(vocab_size=vocabulary, hidden_size=16, n_layer=2, n_head=2, bos_token_id=0,
                                        eos_token_id=0, pad_token_id=0))  # fmt: skip


def mamba(vocabulary):
    """No attention at all."""
    return MambaForCausalLM(MambaConfig(vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, state_size=4,
                                        bos_token_id=0, eos_token_id=0, pad_token_id=0))  # fmt: skip


def mistral(vocabulary):
    """Attention over a window that is narrower than some of the sentences."""
    return MistralForCausalLM(MistralConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=24, head_dim=8,
                                            num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                                            sliding_window=4))  # fmt: skip


def opt(vocabulary):
    """Its positions begin at 2."""
    return OPTForCausalLM(OPTConfig(vocab_size=vocabulary, hidden_size=16, ffn_dim=24, num_hidden_layers=2,
                                    num_attention_heads=2, max_position_embeddings=80, word_embed_proj_dim=16,
                                    bos_token_id=0, eos_token_id=0, pad_token_id=1))  # fmt: skip


def pythia(vocabulary):
    return GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=24,
                                            num_hidden_layers=2, num_attention_heads=2))  # fmt: skip


TOKENIZERS = {"byte_level": byte_level, "adds_bos": adds_bos, "lower_case": lambda: lower_case(eos_token="[END]")}
MODELS = {"gpt2": gpt2, "llama": llama, "cohere": cohere}
MORE_MODELS = {"bloom": bloom, "mamba": mamba, "mistral": mistral, "opt": opt, "pythia": pythia}


def made(model, tokenizer):
    torch.manual_seed(1)
    network = model(len(tokenizer)).eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=0.3)
    return network


@torch.no_grad()
def one_by_one(network, before, ids):
    """ln p of each token: all logits of one sentence alone, softmax written out in double precision."""
    read = [*before, *ids]
    logits = network(input_ids=torch.tensor([read])).logits[0].double()
    return [
        float(logits[at - 1, read[at]]) - math.log(float(logits[at - 1].exp().sum()))
        for at in range(len(before), len(read))
    ]


@pytest.mark.parametrize("batch_tokens", [1, 5_000])
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_equals_the_models_own_logits_one_sentence_at_a_time(model, tokenizer, batch_tokens):
    tokenizer = TOKENIZERS[tokenizer]()
    network = made(MODELS[model], tokenizer)
    scorer = CausalScorer(network, tokenizer, "m", batch_tokens)
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    text = "The dog ."
    inside = tokenizer(text, add_special_tokens=False)["input_ids"]
    for asked, before in [
        (policy(), [begin]),
        (policy(context="eos"), [begin] * 4),
        (policy(context="text", context_text=text), [begin, *inside, begin]),
    ]:
        for sentence, found in zip(SENTENCES, scorer.score(SENTENCES, asked), strict=True):
            ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
            assert found.logprobs == pytest.approx(one_by_one(network, before, ids), abs=1e-4)
            assert len(found.spans) == len(found.unk) == len(ids)


@pytest.mark.parametrize("model", MORE_MODELS)
def test_models_of_every_kind_of_attention(model):
    tokenizer = byte_level()
    network = made(MORE_MODELS[model], tokenizer)
    scorer = CausalScorer(network, tokenizer, "m", 5_000)
    for sentence, found in zip(SENTENCES, scorer.score(SENTENCES, policy()), strict=True):
        ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        assert found.logprobs == pytest.approx(one_by_one(network, [tokenizer.eos_token_id], ids), abs=1e-4)


def test_trees_are_read_only_by_models_that_follow_a_mask_and_positions():
    tokenizer = byte_level()
    reads = {name: CausalScorer(made(model, tokenizer), tokenizer, "m", 100).reads_trees
             for name, model in (MODELS | MORE_MODELS).items()}  # fmt: skip
    assert {name for name, can in reads.items() if not can} == {"bloom", "mamba"}


def test_the_head_is_taken_alone_only_where_it_makes_the_logits():
    tokenizer = byte_level()
    assert CausalScorer(made(gpt2, tokenizer), tokenizer, "m", 100).head is not None
    assert CausalScorer(made(cohere, tokenizer), tokenizer, "m", 100).head is None


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_spans_lie_on_the_characters_of_the_tokens(tokenizer):
    tokenizer = TOKENIZERS[tokenizer]()
    (found,) = CausalScorer(made(gpt2, tokenizer), tokenizer, "m", 100).score(["The cats sleep ."], policy())
    covered = {at for start, end in found.spans.tolist() for at in range(start, end)}
    letters = {at for at, letter in enumerate("The cats sleep .") if letter != " "}
    assert letters <= covered
    assert (np.diff(found.spans[:, 0]) >= 0).all()


def test_unknown_words_and_the_end():
    tokenizer = lower_case(eos_token="[END]")
    scorer = CausalScorer(made(gpt2, tokenizer), tokenizer, "m", 100)
    (found,) = scorer.score(["The ZEBRA sleeps"], policy(score_eos=True))
    assert found.unk.tolist() == [False, True, False, False]
    assert found.spans.tolist() == [[0, 3], [4, 9], [10, 16], [16, 16]]
    tokenizer = byte_level()  # its <unk> is its begin symbol: no text holds it
    assert not CausalScorer(made(gpt2, tokenizer), tokenizer, "m", 100).score(["zebra"], policy())[0].unk.any()


def test_a_sentence_must_begin_with_something():
    tokenizer = lower_case()
    network = made(gpt2, tokenizer)
    with pytest.raises(ConfigError, match=r"neither BOS nor EOS; give model\.begin=TOKEN"):
        CausalScorer(network, tokenizer, "m", 100)
    with pytest.raises(ConfigError, match=r"model\.begin=\[BEGIN\]: no token of m"):
        CausalScorer(network, tokenizer, "m", 100, begin="[BEGIN]")
    scorer = CausalScorer(network, tokenizer, "m", 100, begin="[END]")
    (found,) = scorer.score(["The cat"], policy())
    ids = tokenizer("The cat")["input_ids"]
    assert found.logprobs == pytest.approx(one_by_one(network, [1], ids), abs=1e-5)
    with pytest.raises(ConfigError, match=r"policy\.score_eos=true: the tokenizer of m has no end symbol"):
        scorer.score(["The cat"], policy(score_eos=True))


def test_a_text_longer_than_the_model_reads_is_one_line():
    tokenizer = byte_level()
    with pytest.raises(InputError, match=r"m reads 80 tokens at most; the longest text has 100"):
        CausalScorer(made(gpt2, tokenizer), tokenizer, "m", 100).score(["猫" * 33 + "a"], policy())


def word_pieces():
    """BERT: lower case, pieces of words, symbols around a sentence."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=45, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    around = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]",
        cls_token="[CLS]", sep_token="[SEP]",
    )  # fmt: skip


def masked_bytes():
    """RoBERTa: bytes, spaces belong to the word that follows."""
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"mask_token": "<mask>", "pad_token": "<pad>"})
    return tokenizer


def bert(vocabulary):
    return BertForMaskedLM(BertConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                                      num_attention_heads=2, max_position_embeddings=80))  # fmt: skip


def roberta(vocabulary):
    return RobertaForMaskedLM(RobertaConfig(vocab_size=vocabulary, hidden_size=16, intermediate_size=24,
                                            num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=80,
                                            pad_token_id=1, bos_token_id=0, eos_token_id=0))  # fmt: skip


MASKED = {"bert": (bert, word_pieces), "roberta": (roberta, masked_bytes)}


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
    network = made(network, tokenizer)
    sentences = ["The cats sleep near a dog .", "Who saw the zebras ?", "The", "sleeps sleepy cat."]
    expected = [one_mask_at_a_time(network, tokenizer, sentence, pll) for sentence in sentences]
    scorer = MaskedScorer(network, tokenizer, "m", batch_tokens)
    for found, logprobs in zip(scorer.score(sentences, policy(pll=pll)), expected, strict=True):
        assert found.logprobs == pytest.approx(logprobs, abs=1e-4)
        assert len(found.spans) == len(found.unk) == len(logprobs)


def test_the_two_kinds_of_pll_differ_within_words_only():
    tokenizer = word_pieces()
    network = made(bert, tokenizer)
    scorer = MaskedScorer(network, tokenizer, "m", 1_000)
    sentence = "The zebras sleep ."
    one, other = (scorer.score([sentence], policy(pll=pll))[0] for pll in ("original", "within_word_l2r"))
    words = tokenizer(sentence, add_special_tokens=False).word_ids()
    last = np.asarray([at + 1 == len(words) or words[at + 1] != word for at, word in enumerate(words)])
    assert not last.all()
    assert one.logprobs[last] == pytest.approx(other.logprobs[last], abs=1e-5)
    assert (np.abs(one.logprobs - other.logprobs)[~last] > 1e-4).all()
    assert np.array_equal(scorer.score([sentence], policy())[0].logprobs, other.logprobs)


def test_what_a_masked_model_cannot_do_is_one_line():
    tokenizer = word_pieces()
    scorer = MaskedScorer(made(bert, tokenizer), tokenizer, "m", 100)
    with pytest.raises(ConfigError, match=r"policy\.context=eos: a masked model is scored on the sentence alone"):
        scorer.score(["The"], policy(context="eos"))
    with pytest.raises(ConfigError, match=r"policy\.score_eos=true: a masked model predicts no end"):
        scorer.score(["The"], policy(score_eos=True))
    with pytest.raises(InputError, match=r"m reads 80 tokens at most"):
        scorer.score(["cat " * 79], policy())
    with pytest.raises(ConfigError, match=r"has no mask token; a causal model is model=hf_causal"):
        MaskedScorer(made(bert, tokenizer), byte_level(), "m", 100)


@pytest.fixture
def saved(tmp_path):
    """A folder as `save_pretrained` leaves it."""
    tokenizer = byte_level()
    made(gpt2, tokenizer).save_pretrained(tmp_path / "gpt")
    tokenizer.save_pretrained(tmp_path / "gpt")
    return tmp_path / "gpt"


def config(path, **values):
    default = {"name": "hf", "kind": "causal", "path": str(path), "dtype": "fp32"}
    return PretrainedConfig(**default | values)


def test_a_saved_model_scores_as_the_one_in_memory(saved):
    tokenizer = byte_level()
    memory = CausalScorer(made(gpt2, tokenizer), tokenizer, "m", 100)
    for scorer in (load_pretrained(config(saved), 100), load_scorer(saved)):
        assert (scorer.digest, scorer.sample_words) == (memory.digest, None)
        for one, other in zip(scorer.score(SENTENCES, policy()), memory.score(SENTENCES, policy()), strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_what_cannot_be_loaded_is_one_line(saved, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"model\.path=\./nowhere: no such folder"):
        load_pretrained(config("./nowhere"), 100)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"no network; for a local copy give model\.path=FOLDER"):
        load_pretrained(config("nobody/nothing"), 100)
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match=r"load_in_4bit=true: needs an NVIDIA GPU"):
            load_pretrained(config(saved, load_in_4bit=True), 100)
    masked = tmp_path / "bert"
    shutil.copytree(saved, masked)
    bert = BertConfig(vocab_size=300, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    BertForMaskedLM(bert).save_pretrained(masked)
    with pytest.raises(ConfigError, match=r"a masked model \(BertForMaskedLM\); give model=hf_masked"):
        load_pretrained(config(masked), 100)
    with pytest.raises(ConfigError, match=r"a causal model \(GPT2LMHeadModel\); give model=hf_causal"):
        load_pretrained(config(saved, kind="masked"), 100)
    headless = tmp_path / "headless"
    shutil.copytree(masked, headless)
    BertModel(bert).save_pretrained(headless)
    with pytest.raises(InputError, match=r"its weights lack cls\.predictions\..*, which a masked model needs"):
        load_pretrained(config(headless, kind="masked"), 100)
    weights = saved / "model.safetensors"
    torch.save(made(gpt2, byte_level()).state_dict(), saved / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(InputError, match=r"only there as a pickle \(pytorch_model\.bin\).*allow_pickle=true"):
        load_pretrained(config(saved), 100)
    assert load_pretrained(config(saved, allow_pickle=True), 100).score(["The"], policy())


def test_its_run_is_named_by_the_model_alone(tmp_path):
    from train.runs import run_id

    names = {
        run_id(compose("eval", ["model=hf_causal", "model.path=org/gpt", *more]))
        for more in ([], ["seed=2"], ["sample.size=2M"], ["model.revision=step1000"], ["model.dtype=bf16"])
    }
    assert len(names) == 3
    assert {name.rpartition("-")[0] for name in names} == {"hf_causal-gpt", "hf_causal-gpt-step1000"}


@pytest.fixture
def checkpoints(tmp_path):
    """A folder with a model of its own at each of three steps of training, as the Trainer leaves it."""
    tokenizer = byte_level()
    for step in (1, 2, 10):
        folder = tmp_path / "gpt" / f"checkpoint-{step}"
        torch.manual_seed(step)
        gpt2(len(tokenizer)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    (tmp_path / "gpt" / "logs").mkdir()
    return tmp_path / "gpt"


def composed(*overrides):
    return compose("eval", ["study=s", "model=hf_causal", *overrides]).model


def test_revisions_by_name_and_pattern_go_by_step(checkpoints):
    asked = composed(f"model.path={checkpoints}", "model.revisions=['checkpoint-*']", "model.tokens_per_step=1000")
    found = revisions(asked)
    assert [one.revision for one in found] == ["checkpoint-1", "checkpoint-2", "checkpoint-10"]
    assert [(one.step, one.tokens) for one in found] == [(1, 1000), (2, 2000), (10, 10_000)]
    named = composed(f"model.path={checkpoints}", "model.revisions=[checkpoint-10,checkpoint-2]")
    assert [(one.revision, one.tokens) for one in revisions(named)] == [("checkpoint-2", None), ("checkpoint-10", None)]
    alone = composed(f"model.path={checkpoints}/checkpoint-1")
    assert revisions(alone) == [alone]
    digests = {load_pretrained(one, 100).digest for one in found}
    assert len(digests) == 3
    torch.manual_seed(2)
    assert load_pretrained(found[1], 100).digest == weights_digest(gpt2(len(byte_level())))


def test_the_step_is_read_as_the_families_write_it():
    steps = {"step1000": 1000, "stage1-step42-tokens5B": 42, "checkpoint-7": 7, "main": None}
    assert {name: composed("model.path=x", f"model.revision={name}").step for name in steps} == steps


def test_revisions_that_are_not_there_are_one_line(checkpoints, monkeypatch):
    with pytest.raises(InputError, match=r"model\.revisions=step\*: no such revision .* there are checkpoint-1, "):
        revisions(composed(f"model.path={checkpoints}", "model.revisions=['step*']"))
    with pytest.raises(InputError, match=r"checkpoint-3: no such folder"):
        load_pretrained(composed(f"model.path={checkpoints}", "model.revision=checkpoint-3"), 100)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"model\.path=no/such: .*(network|offline)"):
        revisions(composed("model.path=no/such", "model.revisions=['step*']"))
    with pytest.raises(ConfigError, match=r"give one of them"):
        composed("model.path=x", "model.revision=a", "model.revisions=[b]")
    with pytest.raises(ConfigError, match=r"model\.revision_pattern=\\d\+: must have one group"):
        composed("model.path=x", "model.revision_pattern='\\d+'")
