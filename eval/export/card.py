"""Model cards (README.md) and CITATION.cff of exported models: what was trained on what, and how well it does."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from corpora.fast_tokenizers import is_serialisable
from eval.scores.accuracy import accuracies
from eval.scores.files import ITEMS_FILE, read_items, read_scores, with_phenomena
from eval.scores.names import benchmark_name
from eval.sweeps import commands_of, requested_runs
from pairscale.command.line import as_written
from train.models.huggingface import HuggingFaceModel
from train.runs.folder import RunFolder
from train.runs.metrics import exported_validation
from train.runs.model_folder import LoadedModel

_CARD = """\
---
{front}---

# {name}

{introduction}

## Use

```python
{example}```

{notes}

## Training

{training}

## Results

{results}

## Made again by

```
{commands}
```

## Versions

{versions}

## Licence

{licence}
"""
_EXAMPLE = """\
from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}"{option})
model = {auto}.from_pretrained("{name}"{option}).eval()
"""
_CAUSAL_EXAMPLE = """\
tokens = tokenizer("<a sentence>", return_tensors="pt")["input_ids"]  # begins with <eos>
with torch.no_grad():
    logprobs = model(tokens).logits.log_softmax(-1)[0, :-1].gather(-1, tokens[0, 1:, None])
"""
_SHIFTED = "It predicts a hidden token at the position before it (masked next-token prediction)."
_HYBRID = (
    "A share of its training blocks was causal (the hybrid objective of GPT-BERT): under a causal attention mask it "
    "predicts the next token."
)
_INTERVAL = (
    "Accuracy is the mean over paradigms; the interval is Wilson's over new pairs of the same paradigms, for this one "
    "model: it says nothing of other seeds or samples."
)
_NO_LICENCE = "Not stated by who exported the model; the text may have one of its own."
_NO_SCORES = ("items", "tokens", "topk")  # files beside scores of pairs


def card(run: RunFolder, loaded: LoadedModel, name: str, step: int | None, licence: str | None, ties: str) -> str:
    """Return README.md, with its YAML front matter. Raises RunError for damaged files of the run.

    name: of the model on the hub. step: of a snapshot; None for the run's own model. licence: as the hub names
    licences, None: not stated.
    """
    config, manifest = run.read_config(), run.read_manifest()
    seen = None if step is None else int(loaded.info["words_seen"])
    sample = f"{config['sample']['size']} {config['sample'].get('count', 'words')}"
    front = {
        "library_name": "transformers",
        "pipeline_tag": "fill-mask" if loaded.masked else "text-generation",
        "license": licence or "other",
        **({} if licence else {"license_name": "not-stated"}),
        "tags": ["pairscale", "minimal-pairs", config["model"]["name"]],
    }
    introduction = (
        f"A {'masked ' if loaded.masked else ''}language model ({config['model']['name']}) trained by pairscale on a "
        f"sample of {sample} of the corpus {config['corpus']['name']}, seed {config['seed']}: run `{run.path.name}` of "
        f"the study {run.path.parent.name}."
    )
    return _CARD.format(
        front=yaml.safe_dump(front, sort_keys=False),
        name=name,
        introduction=introduction + (f" Snapshot after {seen:,} words seen (step {step:,})." if seen else ""),
        example=_example(name, loaded),
        notes=" ".join(_notes(loaded)),
        training=_table(("", ""), _training(config, manifest, sample, seen)),
        results="\n\n".join(_results(run, config, step, ties)) or "Not scored.",
        commands="\n".join(_commands(run)),
        versions=_table(("package", "version"), _known(manifest.get("versions", {}))),
        licence=licence or _NO_LICENCE,
    )


def citation(run: RunFolder, name: str, licence: str | None) -> str:
    """Return CITATION.cff."""
    study = run.path.parent.name
    citation = {
        "cff-version": "1.2.0",
        "message": "If you use this model, please cite it and the sources of its data.",
        "type": "software",
        "title": f"{name}, a language model of the study {study}",
        "authors": [{"name": f"The authors of the study {study}"}],
        "date-released": str(run.read_manifest().get("ended", ""))[:10] or None,
        "license": licence,
        "references": [{"type": "software", "title": "pairscale", "authors": [{"name": "The pairscale authors"}]}],
    }
    return yaml.safe_dump(dict(_known(citation)), sort_keys=False, allow_unicode=True)


def _example(name: str, loaded: LoadedModel) -> str:
    option = ", trust_remote_code=True" if _needs_code(loaded) else ""
    auto = "AutoModelForMaskedLM" if loaded.masked else "AutoModelForCausalLM"
    example = _EXAMPLE.format(auto=auto, name=name, option=option)
    return example if loaded.masked else f"import torch\n{example}{_CAUSAL_EXAMPLE}"


def _notes(loaded: LoadedModel) -> Iterator[str]:
    packages = "torch and transformers" if is_serialisable(loaded.tokenizer) else "torch, transformers and rjieba"
    if _needs_code(loaded):
        yield f"`trust_remote_code=True` runs the code that comes with the model, which needs {packages} alone."
    else:
        yield "The model and its tokenizer load without code of their own."
    yield "Batches are padded on the right."
    objective = getattr(loaded.config, "objective", None)
    if objective in ("mntp", "hybrid"):
        yield _SHIFTED
    if objective == "hybrid":
        yield _HYBRID


def _needs_code(loaded: LoadedModel) -> bool:
    return not isinstance(loaded.model, HuggingFaceModel) or not is_serialisable(loaded.tokenizer)


def _training(
    config: Mapping[str, Any], manifest: Mapping[str, Any], sample: str, words_seen: int | None
) -> Iterable[tuple[str, Any]]:
    recipe = config.get("recipe") or {}
    rows = {
        "corpus": config["corpus"]["name"],
        "text (SHA-256)": manifest.get("corpus", {}).get("text"),
        "sample": sample,
        "words in the sample": manifest.get("sample_words"),
        "sample (SHA-256)": manifest.get("sample_digest"),
        "tokenizer": config["tokenizer"]["name"],
        "vocabulary": manifest.get("vocabulary"),
        "parameters": manifest.get("parameters"),
        "seed": config["seed"],
        "recipe": recipe.get("name"),
        "budget": ", ".join(f"{value} {key}" for key, value in _known(recipe.get("budget") or {})) or None,
        "words seen": words_seen or manifest.get("words_seen"),
        "precision": config.get("precision"),
    }
    return ((name, f"{value:,}" if isinstance(value, int) else value) for name, value in _known(rows))


def _results(run: RunFolder, config: Mapping[str, Any], step: int | None, ties: str) -> Iterator[str]:
    if step is None and run.metrics.exists():
        measured = exported_validation(run.metrics, (config.get("recipe") or {}).get("export", "last"))
        if (perplexity := measured.get("valid_ppl")) is not None:
            rate = measured.get("valid_oov_rate")
            unknown = "" if rate is None else f" (words that are `<unk>`: {rate:.1%})"
            yield f"Perplexity per word on the validation split: {perplexity:,.2f}{unknown}."
        if (perplexity := measured.get("valid_pseudo_ppl")) is not None:
            yield f"Pseudo-perplexity per word on a part of the validation split: {perplexity:,.2f}."
    if rows := list(_accuracies(run, step, ties)):
        yield _table(("benchmark", "method", "pairs", "accuracy", "95% interval"), rows)
        yield _INTERVAL


def _accuracies(run: RunFolder, step: int | None, ties: str) -> Iterator[tuple[str, ...]]:
    """Yield benchmark, method, pairs, accuracy and interval of each score file of a model."""
    end = "" if step is None else f"@{step}"
    for folder in sorted(file.parent for file in run.scores("").glob(f"*/{ITEMS_FILE}")):
        items, _ = read_items(folder)
        for path in sorted(folder.glob("*.parquet")):
            method = path.stem.partition("@")[0]
            if path.stem != method + end or method in _NO_SCORES:
                continue
            table = accuracies(with_phenomena(read_scores(path)[0], items), ties)
            (row,) = table[table["level"] == "overall"].itertuples()
            interval = f"{row.low:.3f} to {row.high:.3f}"
            yield benchmark_name(folder.name), method, f"{row.pairs:,}", f"{row.accuracy:.3f}", interval


def _commands(run: RunFolder) -> list[str]:
    """Return the commands that trained the run; for a run of no sweep, a comment with its identity."""
    study = run.path.parent
    requested = requested_runs(study.parent, study.name).get(run.path.name)
    if requested is None:
        return [f"# run {run.path.name} of study {study.name}, which is of no recorded sweep"]
    sweeps = [shlex.join(as_written(shlex.split(command))) for command in commands_of([requested])]
    return [*sweeps, f"# this model: {requested.point}"]


def _known(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return ((name, value) for name, value in values.items() if value not in (None, ""))


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; "|" in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
