"""Exported runs: equal log-probabilities, without pairscale too; folders, cards, uploads and refusals."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
import yaml
from transformers import AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast

from eval.config import PLAIN
from eval.export.run import export, snapshot_name, upload
from eval.scorers.base import Execution
from eval.scorers.load import load_scorer, pretrained_scorer, trained_scorer
from eval.scorers.pretrained import load_pretrained
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.random_models import LSTM, TEXT, TXL, own_scorer, random_model, saved, saved_tokenizer
from tests.support.simulated_study import SimulatedStudy
from train.loop.snapshots import load_snapshot
from train.models.config import GruConfig, HuggingFaceConfig, RnnConfig
from train.runs.folder import RunFolder
from train.runs.model_folder import snapshot_bytes

ADAPTIVE = {"cutoffs": [4, 8], "div_val": 2, "embedding": 8}
MODELS = {
    "lstm": LSTM,
    "gru": GruConfig(**dataclasses.asdict(LSTM) | {"name": "gru"}),
    "rnn": RnnConfig(**dataclasses.asdict(LSTM) | {"name": "rnn"}),
    "lstm-tied": dataclasses.replace(LSTM, embedding=12, tied=True, layers=1),
    "txl": TXL,
    "txl-untied": dataclasses.replace(TXL, tied=False, pre_norm=True, same_length=True, memory=4, clamp_len=3),
    "txl-adaptive": dataclasses.replace(TXL, **ADAPTIVE),
    "txl-adaptive-untied": dataclasses.replace(TXL, **ADAPTIVE, tied=False, tied_projections=True),
}
SENTENCES = [*TEXT, "The cats who saw a dog near the cat sleep .", "Dogs bark .", "Who?"]
# A process that finds torch and transformers, and nothing of pairscale.
ALONE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
for room in ("pairscale", "corpora", "train", "eval", "analysis"):
    try:
        __import__(room)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{room} can be imported")
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer
folder, sentences = sys.argv[2], json.loads(sys.argv[3])
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.float64).eval()
sums = []
for sentence in sentences:
    tokens = torch.tensor([[*tokenizer(sentence)["input_ids"], tokenizer.eos_token_id]])
    with torch.no_grad():
        logprobs = model(tokens).logits.log_softmax(-1)[0, :-1]
    sums.append(logprobs.gather(-1, tokens[0, 1:, None]).sum().item())
text = model.generate(tokens[:, :2], attention_mask=torch.ones(1, 2, dtype=torch.int64), do_sample=False, max_length=8)
print(json.dumps({"sums": sums, "generated": text[0].tolist()}))
"""


def read_by_transformers(folder, **options):
    return AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, **options).eval()


def double_sums(loaded, sentences) -> list[float]:
    """Return the sums of ln p of our own model in float64, `<eos>` scored."""
    own = dataclasses.replace(loaded, model=loaded.model.double())
    scores = own_scorer(own).score(sentences, dataclasses.replace(PLAIN, score_eos=True))
    loaded.model.float()
    return [float(score.logprobs.sum()) for score in scores]


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_has_our_log_probabilities(name, tmp_path):
    loaded = random_model(MODELS[name])
    saved(tmp_path, loaded)
    model = read_by_transformers(tmp_path, dtype=torch.float64)
    ids = [loaded.tokenizer.encode_raw(sentence)[0] for sentence in SENTENCES]
    longest = max(map(len, ids)) + 2
    # One batch: padding on the right changes nothing.
    tokens = torch.tensor([[0, *one, 0, *[1] * (longest - len(one) - 2)] for one in ids])
    with torch.no_grad():
        logprobs = model(tokens).logits.log_softmax(-1)[:, :-1].gather(-1, tokens[:, 1:, None])[..., 0]
    sums = [float(row[: len(one) + 1].sum()) for row, one in zip(logprobs, ids, strict=True)]
    assert sums == pytest.approx(double_sums(loaded, SENTENCES), abs=1e-9)


@torch.no_grad()
def test_logits_loss_and_padding(tmp_path):
    saved(tmp_path, random_model(LSTM))
    model = read_by_transformers(tmp_path)
    tokens = torch.tensor([[0, 2, 3, 4]])
    logits = model(tokens).logits
    assert torch.allclose(model(tokens, logits_to_keep=1).logits, logits[:, -1:], atol=1e-6)
    nats = -logits.log_softmax(-1)[0, :-1].gather(-1, tokens[0, 1:, None]).mean()
    assert model(tokens, labels=tokens).loss == pytest.approx(float(nats), abs=1e-6)
    assert torch.equal(model(tokens, attention_mask=torch.tensor([[1, 1, 1, 0]])).logits, logits)
    padded = torch.tensor([[1, 1, 0, 2, 3, 4], [1, 0, 2, 3, 4, 1], [0, 2, 3, 4, 4, 2]])
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0], [1] * 6])
    both = model(padded, attention_mask=mask).logits
    for row, place in ((0, 2), (1, 1), (2, 0)):
        assert torch.allclose(both[row, place : place + 4], logits[0], atol=1e-6)
    assert torch.equal(model(padded, attention_mask=mask.bool()).logits, both)
    left, right = torch.tensor([[1, 1, 0, 2, 3, 4]]), torch.tensor([[0, 2, 3, 4, 1, 1]])
    for text, of_text in ((left, torch.tensor([[0, 0, 1, 1, 1, 1]])), (right, torch.tensor([[1, 1, 1, 1, 0, 0]]))):
        loss = model(text, attention_mask=of_text, labels=text.masked_fill(of_text == 0, -100)).loss
        assert loss == pytest.approx(float(nats), abs=1e-6)
    with pytest.raises(ValueError, match="within"):
        model(tokens, attention_mask=torch.tensor([[1, 0, 1, 1]]))


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_without_its_softmax_a_model_gives_the_hidden_states_behind_the_logits(name, tmp_path):
    loaded = random_model(MODELS[name])
    saved(tmp_path, loaded)
    tokens = torch.tensor([[0, 2, 3, 4]])
    hidden = AutoModel.from_pretrained(tmp_path, trust_remote_code=True).eval()(tokens).last_hidden_state
    assert hidden.shape[-1] == read_by_transformers(tmp_path).config.hidden_size
    expected = read_by_transformers(tmp_path)(tokens).logits.log_softmax(-1)[0, 0, 2]
    assert loaded.model.eval().logprobs(hidden[0, :1], torch.tensor([2])) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("kind", ["word", "char", "unigram", "jieba"])
def test_a_saved_tokenizer_is_described_in_words_of_transformers_4(kind, tmp_path):
    saved(tmp_path, random_model(LSTM, kind, vocab_size=283 if kind == "unigram" else None))
    described = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert described["tokenizer_class"] == ("PairscaleTokenizer" if kind == "jieba" else "PreTrainedTokenizerFast")
    assert described["model_input_names"] == ["input_ids", "attention_mask"]  # its default has token_type_ids, too


@pytest.fixture
def study(tmp_path) -> RunFolder:
    """Write a scored run of a study with a model and two snapshots."""
    SimulatedStudy(models=("lstm_tiny",), sizes=("125k",), seeds=(1,)).write(tmp_path / "runs")
    (path,) = (tmp_path / "runs" / "simulated").glob("lstm*")
    run, loaded = RunFolder(path), random_model(LSTM)
    saved(run.model.path, loaded)
    for step, words in ((5, 1_000_123), (9, 250_000)):
        data = snapshot_bytes(random_model(LSTM, seed=step).model, {"step": step, "words_seen": words, "moment": "end"})
        snapshot = run.snapshot(step, hashlib.sha256(data).hexdigest())
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.write_bytes(data)
    return run


def configured(run: RunFolder, *overrides: str):
    paths = [f"paths.runs={run.path.parents[1]}", f"paths.reports={run.path.parents[2]}/reports"]
    return compose("export", ["study=simulated", *paths, *overrides])


class Hub:
    """In place of huggingface_hub.HfApi: records what is uploaded where."""

    def __init__(self, refuses: bool = False):
        self.calls, self.refuses = [], refuses

    def create_repo(self, repository, exist_ok):
        if self.refuses:
            raise OSError("401 Client\nError")
        self.calls.append(("create", repository))
        return f"https://huggingface.co/{repository}"

    def create_branch(self, repository, branch, exist_ok):
        self.calls.append(("branch", branch))

    def upload_folder(self, repo_id, folder_path, commit_message, revision="main", ignore_patterns=()):
        self.calls.append(("upload", revision, Path(folder_path).name, list(ignore_patterns)))


def test_a_model_goes_to_the_main_branch_and_snapshots_to_their_own(study, monkeypatch):
    hub = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: hub)
    export(configured(study, "push=me/grammar"))
    assert hub.calls == [
        ("create", "me/grammar"),
        ("upload", "main", study.path.name, ["chck_*/*"]),
        ("branch", "chck_1M"),
        ("upload", "chck_1M", "chck_1M", []),
        ("branch", "chck_250k"),
        ("upload", "chck_250k", "chck_250k", []),
    ]
    with pytest.raises(InputError, match=r"push=me/grammar: .*401 Client Error"):
        upload(study.path, {}, "me/grammar", Hub(refuses=True))


def test_snapshots_are_named_by_words_seen():
    names = {812: "chck_812", 250_000: "chck_250k", 999_812: "chck_1M", 1_234_567: "chck_1.23M", 10**9: "chck_1000M"}
    assert {words: snapshot_name(words) for words in names} == names
    assert snapshot_name(1_006_120, "1M") == "chck_1M"  # not chck_1.01M
    assert snapshot_name(1_006_120, "1/2") == snapshot_name(1_006_120, "end") == "chck_1.01M"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm", "txl-adaptive"])
def test_an_export_needs_nothing_of_pairscale(name, tmp_path):
    loaded = random_model(MODELS[name])
    saved(tmp_path / "model", loaded)
    packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    command = [sys.executable, "-I", "-S", "-c", ALONE, json.dumps(packages), str(tmp_path / "model")]
    environment = {"HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
                   "PATH": "/usr/bin:/bin"}  # fmt: skip
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [  # at once, with an empty cache of modules
        subprocess.Popen([*command, json.dumps(SENTENCES)], cwd=tmp_path, env=environment, **pipes) for _ in range(4)
    ]
    for process, (out, errors) in [(process, process.communicate()) for process in started]:
        assert process.returncode == 0, errors
        result = json.loads(out.splitlines()[-1])
        assert result["sums"] == pytest.approx(double_sums(loaded, SENTENCES), abs=1e-9)
        assert len(result["generated"]) > 2


def test_each_run_and_snapshot_is_a_folder_with_a_card(study):
    (folder,) = export(configured(study, "licence=cc-by-4.0"))
    assert folder == study.path.parents[2] / "reports" / "simulated" / "huggingface" / study.path.name
    files = {path.name for path in folder.iterdir()}
    assert files >= {"model.safetensors", "config.json", "tokenizer.json", "generation_config.json", "README.md",
                     "CITATION.cff", "recurrent.py", "modeling.py", "chck_1M", "chck_250k"}  # fmt: skip
    weights = read_by_transformers(folder / "chck_1M").state_dict()
    for name, weight in load_snapshot(study, 5).model.state_dict().items():
        assert torch.equal(weights[f"model.{name}"], weight)
    card = (folder / "README.md").read_text()
    front = yaml.safe_load(card.split("---\n")[1])
    assert (front["license"], front["library_name"]) == ("cc-by-4.0", "transformers")
    for part in ("\nseed: 1\n", "125k words", "\nBLiMP | lp |", "trust_remote_code=True", "Perplexity"):
        assert part in card
    assert "1,000,123 words seen" in (folder / "chck_1M" / "README.md").read_text()


@pytest.mark.slow
def test_the_example_of_a_card_gives_our_sums(study, tmp_path):
    (folder,) = export(configured(study))
    (example,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    code = example.replace(study.path.name, str(folder)).replace("<a sentence>", SENTENCES[-2])
    command = [sys.executable, "-c", f"{code}print(float(logprobs.sum()))"]
    cache = {"HF_MODULES_CACHE": str(tmp_path / "hub")}
    done = subprocess.run(command, env=os.environ | cache, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (ours,) = own_scorer(random_model(LSTM)).score([SENTENCES[-2]], dataclasses.replace(PLAIN, score_eos=False))
    assert float(done.stdout) == pytest.approx(float(ours.logprobs.sum()), abs=1e-4)


def test_one_run_is_named_by_its_folder_or_digest_and_others_are_refused(study):
    for name in (study.path.name, study.path.name.rpartition("-")[2]):
        (folder,) = export(configured(study, f"run={name}"))
        assert folder.name == study.path.name
    for override, message in (
        ("run=nothing", r"run=nothing: study=simulated .* no such run\. Give a run's full name"),
        ("push=grammar", "push=grammar: .*must be OWNER/NAME"),
        ("study=null", "Add study=NAME"),
    ):
        with pytest.raises((ConfigError, RunError), match=message):
            export(configured(study, override))
    study.model.description.unlink()
    with pytest.raises(RunError, match="can be exported"):
        export(configured(study))


def test_the_code_of_jiebas_words_is_needed_and_says_what_it_needs(tmp_path, monkeypatch):
    """The file alone would cut Chinese otherwise, so it fails."""
    network = HuggingFaceConfig(name="network", architecture="gpt2", objective="causal", config=NETWORKS["gpt2"][1])
    saved(tmp_path, random_model(network, "jieba"))
    assert (tmp_path / "tokenization_pairscale.py").exists()
    for text in ("The cat sleeps.", "狗 the"):
        with pytest.raises(Exception, match="Missing"):  # of no type of its own
            PreTrainedTokenizerFast.from_pretrained(tmp_path)(text)
    config = compose("eval", ["model=hf_causal", f"model.path={tmp_path}", "study=s"]).model
    with pytest.raises(InputError, match=r"model\.trust_remote_code=true"):
        load_pretrained(config, Execution(256))
    tokenizer = saved_tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "rjieba", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"pip install rjieba$"):
        tokenizer("狗")


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
NETWORKS = {
    "gpt2": ("causal", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}),
    "llama": ("causal", SIZES | {"num_key_value_heads": 2}),
    "bert": ("hybrid", SIZES | {"max_position_embeddings": 65}),
    "roberta": ("mlm", SIZES | {"max_position_embeddings": 65}),
}


@pytest.mark.parametrize("kind", ["word", "unigram"])
@pytest.mark.parametrize("name", ["lstm", "txl-adaptive", *NETWORKS])
def test_a_copy_of_a_models_folder_scores_as_its_run_to_the_last_bit(name, kind, tmp_path):
    config, objective = MODELS.get(name), "causal"
    if config is None:
        objective, values = NETWORKS[name]
        config = HuggingFaceConfig(name="network", architecture=name, objective=objective, config=values)
    loaded = random_model(config, kind, vocab_size=283 if kind == "unigram" else None)
    saved(tmp_path / "copy", loaded)
    of_run = trained_scorer(loaded, "m", Execution(256))
    assert (of_run.digest, of_run.tokenizer_digest) == (loaded.digest, loaded.tokenizer_digest)
    task, other = ("causal", "masked") if objective == "causal" else ("masked", "causal")
    described = compose("eval", [f"model=hf_{task}", f"model.path={tmp_path / 'copy'}", "study=s"]).model
    for scorer in (load_scorer(tmp_path / "copy", 256), pretrained_scorer(described, Execution(256))):
        for one, again in zip(of_run.score(SENTENCES), scorer.score(SENTENCES), strict=True):
            assert one.logprobs.tolist() == again.logprobs.tolist()
    if name in NETWORKS and task == "causal":
        coarse = pretrained_scorer(dataclasses.replace(described, dtype="bf16"), Execution(256))
        assert coarse.scores_eos(PLAIN) == (kind == "word")  # whoever reads the folder
        assert coarse.model.model.dtype == torch.bfloat16
    with pytest.raises(ConfigError, match=f"is a {task} model.*model=hf_{task}"):
        pretrained_scorer(dataclasses.replace(described, kind=other), Execution(256))
