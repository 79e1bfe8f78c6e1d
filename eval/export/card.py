"""Write the model card (README.md) and CITATION.cff of an exported model."""

from collections.abc import Iterator

import yaml

from corpora.fast_tokenizers import is_serialisable
from eval.scores.accuracy import accuracies
from eval.scores.files import pair_scores
from eval.scores.names import benchmark_name
from train.models.huggingface import HuggingFaceModel
from train.runs.folder import RunFolder, exported_validation
from train.runs.model_folder import LoadedModel
from train.sweeps import commands_of, requested_runs

_CARD = """\
---
{front}---

# {name}

{introduction}

## Use

```python
import torch
from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}"{option})
model = {auto}.from_pretrained("{name}"{option}).eval()
{example}```

{notes}

## Training

```yaml
{training}```

## Results

{results}

## Reproduce

```
{commands}
```
"""
_CAUSAL_EXAMPLE = """\
tokens = tokenizer("<a sentence>", return_tensors="pt")["input_ids"]  # begins with <eos>
with torch.no_grad():
    logprobs = model(tokens).logits.log_softmax(-1)[0, :-1].gather(-1, tokens[0, 1:, None])
"""
_SHIFTED = "The model predicts a masked token at the position before it (masked next-token prediction)."
_HYBRID = (
    "Some of its training blocks were causal (the hybrid objective of GPT-BERT). With a causal attention mask, the "
    "model therefore predicts the next token."
)


def card(
    run: RunFolder, loaded: LoadedModel, name: str, step: int | None, licence: str | None, ties: str | None
) -> str:
    """Return the text of README.md, with its YAML front matter. Raises RunError if files of the run are damaged.

    Args:
        run: The run.
        loaded: The run's exported model, or the snapshot at `step`.
        name: Name of the model on the hub.
        step: Training step of the snapshot, or None for the exported model.
        licence: Name of the licence on the hub, or None if it isn't stated.
        ties: Whether a tie is counted as wrong, half (half right) or right.
    """
    config, manifest, study = run.read_config(), run.read_manifest(), run.path.parent
    recipe, words_seen = config.get("recipe") or {}, manifest.get("words_seen")
    sample = f"{config['sample']['size']} {config['sample'].get('count', 'words')}"
    introduction = (
        f"A {'masked ' if loaded.masked else ''}language model ({config['model']['name']}), trained with pairscale on "
        f"a sample of {sample} from the corpus {config['corpus']['name']} with seed {config['seed']}. It is the run "
        f"`{run.path.name}` of the study {study.name}."
    )
    if step is not None:
        words_seen = int(loaded.info["words_seen"])
        introduction += f" This is a snapshot after {words_seen:,} words seen (step {step:,})."
    front = {
        "library_name": "transformers",
        "pipeline_tag": "fill-mask" if loaded.masked else "text-generation",
        "license": licence or "other",
        **({} if licence else {"license_name": "not-stated"}),
        "tags": ["pairscale", "minimal-pairs", config["model"]["name"]],
    }
    training = {
        "corpus": {"name": config["corpus"]["name"], "sha256": manifest.get("corpus", {}).get("text")},
        "sample": {"size": sample, "words": manifest.get("sample_words"), "sha256": manifest.get("sample_digest")},
        "tokenizer": {"name": config["tokenizer"]["name"], "vocabulary": manifest.get("vocabulary")},
        "parameters": manifest.get("parameters"),
        "seed": config["seed"],
        "recipe": {"name": recipe.get("name"), "budget": recipe.get("budget"), "precision": config.get("precision")},
        "words_seen": words_seen,
        "versions": manifest.get("versions"),
    }
    requested = requested_runs(study.parent, study.name).get(run.path.name)
    commands = commands_of([requested] if requested else [])
    commands.append(
        f"# this model: {requested.point}" if requested else f"# {run.path.name} isn't part of a recorded sweep"
    )
    needs_code = not isinstance(loaded.model, HuggingFaceModel) or not is_serialisable(loaded.tokenizer)
    return _CARD.format(
        front=yaml.safe_dump(front, sort_keys=False),
        name=name,
        introduction=introduction,
        auto="AutoModelForMaskedLM" if loaded.masked else "AutoModelForCausalLM",
        option=", trust_remote_code=True" if needs_code else "",
        example="" if loaded.masked else _CAUSAL_EXAMPLE,
        notes=" ".join(_notes(loaded, needs_code)),
        training=yaml.safe_dump(training, sort_keys=False),
        results="\n\n".join(_results(run, recipe.get("export", "last"), step, ties)) or "Not scored.",
        commands="\n".join(commands),
    )


def citation(run: RunFolder, name: str, licence: str | None) -> str:
    """Return the text of CITATION.cff."""
    study = run.path.parent.name
    citation = {
        "cff-version": "1.2.0",
        "message": "If you use this model, please cite it and the sources of its training data.",
        "type": "software",
        "title": f"{name}, a language model of the study {study}",
        "authors": [{"name": f"The authors of the study {study}"}],
        "date-released": str(run.read_manifest().get("ended", ""))[:10],
        **({"license": licence} if licence else {}),
        "references": [{"type": "software", "title": "pairscale", "authors": [{"name": "The pairscale authors"}]}],
    }
    return yaml.safe_dump(citation, sort_keys=False, allow_unicode=True)


def _notes(loaded: LoadedModel, needs_code: bool) -> Iterator[str]:
    packages = "torch and transformers" if is_serialisable(loaded.tokenizer) else "torch, transformers and rjieba"
    if needs_code:
        yield f"`trust_remote_code=True` runs the code that comes with the model. This code only needs {packages}."
    yield "Batches are padded on the right."
    objective = getattr(loaded.config, "objective", None)
    if objective in ("mntp", "hybrid"):
        yield _SHIFTED
    if objective == "hybrid":
        yield _HYBRID


def _results(run: RunFolder, export: str, step: int | None, ties: str | None) -> Iterator[str]:
    """Yield paragraphs with the perplexities of a run's exported model, and the accuracies in its score files."""
    if step is None and run.metrics.exists():
        measured = exported_validation(run.metrics, export)
        if (perplexity := measured.get("valid_ppl")) is not None:
            rate = measured.get("valid_oov_rate")
            unknown = "" if rate is None else f" ({rate:.1%} of the words are `<unk>`)"
            yield f"Perplexity per word on the validation split: {perplexity:,.2f}{unknown}."
        if (perplexity := measured.get("valid_pseudo_ppl")) is not None:
            yield f"Pseudo-perplexity per word on part of the validation split: {perplexity:,.2f}."
    rows = []
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder, step):
            row = accuracies(scores, ties).iloc[-1]
            cells = [benchmark_name(folder.name), method, f"{row['pairs']:,}", f"{row['accuracy']:.3f}"]
            rows.append(" | ".join([*cells, f"{row['low']:.3f} to {row['high']:.3f}"]))
    if rows:
        yield "\n".join(["benchmark | method | pairs | accuracy | 95% interval", " | ".join(["---"] * 5), *rows])
        yield ("Accuracy is the mean over paradigms. Intervals are for this model on new pairs of the same paradigms.")
