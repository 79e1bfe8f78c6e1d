"""An exported model scores in other tools as its run does here: transformers, minicons, lm-evaluation-harness, BabyLM.

None of them scores `<eos>`, so sums are those under policy.score_eos=false.
"""

import dataclasses

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedTokenizerBase

from eval.config import PLAIN
from eval.scorers.base import Execution
from eval.scorers.load import trained_scorer
from tests.support.random_models import LSTM, TXL, random_model, saved, saved_tokenizer
from train.models.config import GruConfig, HuggingFaceConfig, RnnConfig

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
         "max_position_embeddings": 66}  # fmt: skip
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}


def network(architecture: str, objective: str, config: dict[str, int]) -> HuggingFaceConfig:
    return HuggingFaceConfig(name=architecture, architecture=architecture, objective=objective, config=config)


CAUSAL = {
    "lstm": LSTM,
    "gru": GruConfig(**dataclasses.asdict(LSTM) | {"name": "gru"}),
    "rnn": RnnConfig(**dataclasses.asdict(LSTM) | {"name": "rnn"}),
    "txl": TXL,
    "txl-adaptive": dataclasses.replace(TXL, cutoffs=[4, 8], div_val=2, embedding=8),
    "gpt2": network("gpt2", "causal", GPT2),
    "llama": network("llama", "causal", SIZES | {"num_key_value_heads": 2}),
}
MASKED = {
    "bert": network("bert", "mlm", SIZES),
    "roberta": network("roberta", "mlm", SIZES),
    "mntp": network("bert", "mntp", SIZES),
    "gpt_bert": network("bert", "hybrid", SIZES),
}
# Each tokenizer with an LSTM, a GPT-2 and a BERT, each other model with words and pieces.
KINDS = ("word", "whitespace", "char", "jieba", "unigram", "bpe")
CASES = [
    *((name, kind) for name in ("lstm", "gpt2", "bert") for kind in KINDS),
    *((name, kind) for name in CAUSAL | MASKED if name not in ("lstm", "gpt2", "bert") for kind in ("word", "unigram")),
]
SENTENCES = [
    "The cats sleep near a dog.",
    "The cat sleep near a dog .",
    'The cat doesn\'t "sleep".',
    "Who?",
    "é sleeps",  # begins with a character that is no piece
    "狗喜欢 the dog.",
]


class Exported:
    """A model with random weights, exported: as it is read by transformers, and its scores here."""

    def __init__(self, name, kind, folder):
        self.config = {**CAUSAL, **MASKED}[name]
        self.loaded = random_model(self.config, kind, vocab_size=283 if kind in ("unigram", "bpe") else None)
        saved(folder, self.loaded)
        self.masked = name in MASKED
        auto = AutoModelForMaskedLM if self.masked else AutoModelForCausalLM
        self.model = auto.from_pretrained(folder, trust_remote_code=True).eval()
        self.tokenizer = saved_tokenizer(folder)

    def scores(self, **policy):
        scorer = trained_scorer(self.loaded, "m", Execution(256))
        return [score.logprobs for score in scorer.score(SENTENCES, dataclasses.replace(PLAIN, **policy))]

    def sums(self, **policy):
        return pytest.approx([float(logprobs.sum()) for logprobs in self.scores(**policy)], abs=1e-4)


@pytest.fixture(scope="module")
def exported(request, tmp_path_factory) -> Exported:
    return Exported(*request.param, tmp_path_factory.mktemp("model"))


def each_of(*names):
    """Run a test with the exports of the models of these names."""
    cases = [case for case in CASES if case[0] in names]
    return pytest.mark.parametrize("exported", cases, ids="-".join, indirect=True)


@each_of(*CAUSAL)
@torch.no_grad()
def test_a_model_writes_what_it_expects(exported):
    """The most probable tokens, one after another, by the run's own model."""
    inputs = exported.tokenizer("The cats sleep", return_tensors="pt")
    model = exported.loaded.model.eval()
    tokens = [0, *exported.loaded.tokenizer.encode_raw("The cats sleep")[0]]
    for _ in range(4):
        hidden, _ = model(torch.tensor([tokens]), model.initial_state(1))
        tokens.append(int(model.all_logprobs(hidden[0, -1:]).argmax()))
        if tokens[-1] == 0:
            break
    written = exported.model.generate(**inputs, do_sample=False, max_new_tokens=4, pad_token_id=0)
    assert written[0].tolist() == tokens


@each_of(*CAUSAL, *MASKED)
@torch.no_grad()
def test_sums_of_babylms_zero_shot_scorer(exported):
    """It scores the tokens whose characters end after the sentence's beginning; of a masked model each hidden alone."""
    tokenizer, sums = exported.tokenizer, []
    for sentence in SENTENCES:
        read = tokenizer(text=sentence, return_offsets_mapping=True)
        ids, scored = read["input_ids"], [at for at, (_, end) in enumerate(read["offset_mapping"]) if end > 0]
        texts, places = [torch.tensor(ids)] * len(scored), [at - 1 for at in scored]
        if exported.masked:
            texts = [torch.tensor([*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]) for at in scored]
            places = [at - exported.config.shift for at in scored]
        lines = exported.model(
            input_ids=torch.stack(texts), attention_mask=torch.tensor([read["attention_mask"]] * len(texts))
        ).logits.log_softmax(-1)
        sums.append(sum(float(lines[row, places[row], ids[at]]) for row, at in enumerate(scored)))
    assert sums == exported.sums(score_eos=False, pll="original" if exported.masked else None)


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
@each_of(*CAUSAL, "bert", "roberta")  # it knows no models that predict at another position
def test_sums_of_minicons(exported, monkeypatch):
    from minicons.scorer import IncrementalLMScorer, MaskedLMScorer

    # minicons 0.3.39 uses a name that transformers 5 has dropped.
    monkeypatch.setattr(PreTrainedTokenizerBase, "batch_encode_plus", PreTrainedTokenizerBase.__call__, raising=False)
    total = {"reduction": lambda scores: scores.sum(0).item()}
    scorer, policy = (MaskedLMScorer, {"pll": "original"}) if exported.masked else (IncrementalLMScorer, {})
    peer = scorer(exported.model, "cpu", tokenizer=exported.tokenizer)
    assert peer.sequence_score(SENTENCES, **total) == exported.sums(score_eos=False, **policy)


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
@each_of(*CAUSAL)
def test_sums_of_lm_evaluation_harness(exported):
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    options = {"pretrained": exported.model, "tokenizer": exported.tokenizer, "batch_size": 4, "device": "cpu"}
    peer = HFLM(**options)

    def sums(*texts):
        requests = [Instance("loglikelihood", {}, text, index) for index, text in enumerate(texts)]
        return [value for value, _ in peer.loglikelihood(requests, disable_tqdm=True)]

    whole = sums(*(("", sentence) for sentence in SENTENCES))
    assert whole == exported.sums(score_eos=False)
    # A sentence in two parts, as in tasks with a context: the same tokens, where no piece lies on both sides.
    first, rest = "The cats sleep", " near a dog."
    assert sum(sums(("", first), (first, rest))) == pytest.approx(whole[0], abs=1e-4)
    # Its perplexities put a begin symbol before the tokenizer's own, unless that is turned off.
    peer = HFLM(**options, add_bos_token=False)
    requests = [Instance("loglikelihood_rolling", {}, (text,), index) for index, text in enumerate(SENTENCES)]
    assert peer.loglikelihood_rolling(requests, disable_tqdm=True) == exported.sums(score_eos=False)
