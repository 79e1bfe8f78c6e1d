"""Fine-tune models of transformers and exported folders: their inputs, results, curves and messages."""

import json

import pandas as pd
import pytest
import torch
import transformers
from tokenizers import processors

from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.small_pretrained import byte_level, word_pieces
from tests.support.small_runs import overrides, trained, write_text
from train.finetune.pretrained import load_pretrained
from train.finetune.run import finetune_study
from train.finetune.table import encode, read_table
from train.finetune.training import Classifier
from train.runs.folder import study_runs
from train.trackers import tracker as trackers
from train.trackers.tracker import Tracker

AROUND = [("[CLS]", 2), ("[SEP]", 3)]
ROWS = [("The cats sleep .", "Who ?"), ("Who saw the dog that saw the naïve cat ?", "The cat"), ("a", "b {a}")] * 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a BERT, a GPT-2 and a table of pairs. The models have random weights."""
    folder, bert, gpt2 = tmp_path_factory.mktemp("pretrained"), word_pieces(), byte_level()
    pair = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=AROUND
    )
    bert._tokenizer.post_processor = pair
    widths = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    widths |= {"max_position_embeddings": 24}
    torch.manual_seed(0)
    for kind, auto, tokenizer in (
        ("bert", transformers.AutoModelForMaskedLM, bert),
        ("gpt2", transformers.AutoModelForCausalLM, gpt2),
    ):
        special = {"bos_token_id": 0, "eos_token_id": 0} if kind == "gpt2" else {}
        config = transformers.AutoConfig.for_model(kind, vocab_size=len(tokenizer), **widths, **special)
        auto.from_config(config).save_pretrained(folder / kind)
        tokenizer.save_pretrained(folder / kind)
    rows = [{"a": a, "b": b, "label": number % 2} for number, (a, b) in enumerate(ROWS)]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def configuration_words(folder):
    paths = [f"task.train={folder}/t.jsonl", f"task.valid={folder}/t.jsonl", f"paths.runs={folder}/runs", "study=s"]
    task = ["task=local", "task.name=t", "task.first='{a}'", "task.second='{b}'", "task.batch=8", "task.epochs=3"]
    return [*paths, *task, "trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu"]


def configuration(folder, kind, model, *more):
    words = [*configuration_words(folder), f"model=hf_{kind}", f"model.path={folder}/{model}"]
    return compose("finetune", [*words, *more])


@pytest.mark.parametrize(("model", "kind"), [("bert", "masked"), ("gpt2", "causal")])
@pytest.mark.parametrize("longest", [8, 24])
def test_inputs_are_those_of_the_tokenizer_with_the_special_tokens_that_it_adds(folder, model, kind, longest):
    config = configuration(folder, kind, model, f"task.tokens={longest}")
    loaded = load_pretrained(config.model)
    items = encode(read_table(config.task.valid, config.task), ["0", "1"], loaded, config.task)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / model)
    assert items.ids == tokenizer(ROWS, truncation=True, max_length=longest)["input_ids"]  # as in BabyLM's pipeline
    assert items.cut == sum(len(ids) > longest for ids in tokenizer(ROWS)["input_ids"])
    around = {(ids[0], ids[-1]) for ids in items.ids}
    assert (around == {(2, 3)}) == (model == "bert")


@pytest.mark.parametrize(("model", "kind"), [("bert", "masked"), ("gpt2", "causal")])
def test_the_classifier_reads_the_hidden_states_of_the_base_model(folder, model, kind):
    config = configuration(folder, kind, model)
    loaded = load_pretrained(config.model)
    items = encode(read_table(config.task.valid, config.task), ["0", "1"], loaded, config.task)
    classifier, base = Classifier(loaded.model, 2, 0.0).eval(), transformers.AutoModel.from_pretrained(folder / model)
    batch = items.batch(range(3))
    with torch.no_grad():
        logits = classifier(batch.tokens, batch.places)
        for row, ids in enumerate(items.ids[:3]):
            hidden = base.eval()(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
            assert torch.allclose(classifier.head(hidden), logits[row], atol=1e-5)


def test_a_pretrained_model_becomes_a_run_that_later_commands_find(folder, monkeypatch, capsys):
    points, ends = [], []

    class Recording(Tracker):
        def log(self, point):
            points.append(point)

        def summarise(self, values):
            ends.append((self.job.kind, self.job.name, dict(values)))

    monkeypatch.setitem(trackers._TRACKERS, "recording", Recording)
    finetune_study(configuration(folder, "masked", "bert", "logger.name=recording"))
    (run,) = study_runs(folder / "runs", "s")
    assert run.done
    assert run.read_config()["model"]["path"] == f"{folder}/bert"
    tuned = run.finetuned("t", 1)
    metrics = pd.read_csv(tuned.metrics)
    assert [point["step"] for point in points] == metrics["step"].tolist() == [3, 6, 9]
    assert [point["accuracy"] for point in points] == metrics["accuracy"].tolist()
    best = tuned.read_manifest()["best"]
    summary = {f"best/{name}": value for name, value in best.items() if name != "weights"}
    assert ends == [("finetune", f"{run.path.name} t seed-1", summary)]

    capsys.readouterr()
    finetune_study(compose("finetune", configuration_words(folder)))
    assert "Already fine-tuned: " + run.path.name in capsys.readouterr().err


def test_an_exported_folder_is_fine_tuned_as_its_run(folder, tmp_path):
    write_text(tmp_path)
    run = trained(compose("train", overrides(tmp_path, "bert", "runs", "recipe.budget.epochs=1", "study=s")))
    config = configuration(folder, "masked", "bert", f"paths.runs={tmp_path}/runs")
    finetune_study(compose("finetune", [*configuration_words(folder), f"paths.runs={tmp_path}/runs"]))
    config.model.path = str(run.model.path)
    finetune_study(config)
    other = next(one for one in study_runs(tmp_path / "runs", "s") if one.path.name != run.path.name)
    names = ("predictions.csv", "metrics.csv")
    results = [[(one.finetuned("t", 1).path / name).read_text() for name in names] for one in (run, other)]
    assert results[0] == results[1]
    assert other.finetuned("t", 1).read_manifest()["weights"] == run.model.digest()


@pytest.mark.parametrize(
    ("kind", "more", "error", "said"),
    [
        ("causal", [], ConfigError, "masked model.*Use model=hf_masked"),
        ("masked", ["model.trust_remote_code=true"], ConfigError, "trust_remote_code=true: fine-tuning doesn't use"),
        ("masked", ["model.path=./nowhere"], InputError, "model.path=./nowhere: this folder doesn't exist"),
        ("masked", ["run=1234abcd"], ConfigError, "both choose a model"),
    ],
)
def test_models_that_cannot_be_fine_tuned_are_explained(folder, tmp_path, kind, more, error, said):
    with pytest.raises(error, match=said):
        finetune_study(configuration(folder, kind, "bert", f"paths.runs={tmp_path}", *more))
    assert not list(tmp_path.iterdir())


def test_a_row_without_text_is_named(folder, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": "x", "b": "y", "label": 0}\n{"a": " ", "b": "", "label": 1}\n' * 8)
    with pytest.raises(InputError, match=r"t\.jsonl: line 2: there is an empty text"):
        finetune_study(configuration(folder, "causal", "gpt2", f"task.valid={tmp_path}/t.jsonl"))
