"""Model cards (README.md) and CITATION.cff of exported models: what was trained on what, and how well it does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import yaml

from corpora.fast_tokenizers import is_serialisable
from corpora.tokenizers import Tokenizer
from eval.scores.accuracy import accuracies
from eval.scores.files import ITEMS_FILE, read_items, read_scores, with_phenomena
from eval.scores.names import benchmark_name
from eval.sweeps import commands_of, requested_runs
from pairscale.command.line import as_written
from train.models.huggingface import HuggingFaceModel
from train.runs.folder import RunFolder
from train.runs.metrics import exported_validation
from train.runs.model_folder import LoadedModel


@dataclass(frozen=True)
class Card:
    """What the card of one exported model says.

    name: of the model there. step: of a snapshot; None for the run's own model. licence: as the hub names licences,
    None: not stated.
    """

    name: str
    run: RunFolder
    loaded: LoadedModel
    step: int | None
    licence: str | None
    ties: str

    def text(self) -> str:
        """Return README.md, with its YAML front matter. Raises RunError for damaged files of the run."""
        config, manifest = self.run.read_config(), self.run.read_manifest()
        front = {
            "library_name": "transformers",
            "pipeline_tag": "fill-mask" if self.loaded.masked else "text-generation",
            "license": self.licence or "other",
            **({} if self.licence else {"license_name": "not-stated"}),
            "tags": ["pairscale", "minimal-pairs", config["model"]["name"]],
        }
        sections = [
            f"# {self.name}",
            self._introduction(config),
            "## Use\n\n" + self._use(),
            "## Training\n\n" + _table(("", ""), self._training(config, manifest)),
            "## Results\n\n" + self._results(config),
            "## Made again by\n\n```\n" + "\n".join(self.commands()) + "\n```",
            "## Versions\n\n" + _table(("package", "version"), _pairs(manifest.get("versions", {}))),
            "## Licence\n\n"
            + (self.licence or "Not stated by who exported the model; the text may have one of its own."),
        ]
        return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n" + "\n\n".join(sections) + "\n"

    def citation(self) -> str:
        """Return CITATION.cff."""
        study = self.run.path.parent.name
        citation = {
            "cff-version": "1.2.0",
            "message": "If you use this model, please cite it and the sources of its data.",
            "type": "software",
            "title": f"{self.name}, a language model of the study {study}",
            "authors": [{"name": f"The authors of the study {study}"}],
            "date-released": str(self.run.read_manifest().get("ended", ""))[:10] or None,
            "license": self.licence,
            "references": [{"type": "software", "title": "pairscale", "authors": [{"name": "The pairscale authors"}]}],
        }
        known = {key: value for key, value in citation.items() if value is not None}
        return yaml.safe_dump(known, sort_keys=False, allow_unicode=True)

    def commands(self) -> list[str]:
        """Return the commands that trained the run; for a run of no sweep, a comment with its identity."""
        study, run = self.run.path.parent, self.run.path.name
        requested = requested_runs(study.parent, study.name).get(run)
        if requested is None:
            return [f"# run {run} of study {study.name}, which is of no recorded sweep"]
        sweeps = [shlex.join(as_written(shlex.split(command))) for command in commands_of([requested])]
        return [*sweeps, f"# this model: {requested.point}"]

    @property
    def words_seen(self) -> int | None:
        """Words seen by a snapshot; None for the run's own model."""
        return None if self.step is None else int(self.loaded.info["words_seen"])

    def _introduction(self, config: dict[str, Any]) -> str:
        sample = config["sample"]
        kind = "masked language model" if self.loaded.masked else "language model"
        seen = "" if self.step is None else f" Snapshot after {self.words_seen:,} words seen (step {self.step:,})."
        return (
            f"A {kind} ({config['model']['name']}) trained by pairscale on a sample of {sample['size']} "
            f"{sample.get('count', 'words')} of the corpus {config['corpus']['name']}, seed {config['seed']}: run "
            f"`{self.run.path.name}` of the study {self.run.path.parent.name}.{seen}"
        )

    def _use(self) -> str:
        code = _needs_code(self.loaded)
        option = ", trust_remote_code=True" if code else ""
        auto = "AutoModelForMaskedLM" if self.loaded.masked else "AutoModelForCausalLM"
        example = (
            f"from transformers import {auto}, AutoTokenizer\n\n"
            f'tokenizer = AutoTokenizer.from_pretrained("{self.name}"{option})\n'
            f'model = {auto}.from_pretrained("{self.name}"{option}).eval()\n'
        )
        if not self.loaded.masked:
            example = f"import torch\n{example}" + _CAUSAL_EXAMPLE
        notes = [
            "The model comes with code (`*_pairscale.py`), which `trust_remote_code=True` runs; it needs "
            f"{_all_of(['torch', 'transformers', *_packages(self.loaded.tokenizer)])} alone."
            if code
            else "The model and its tokenizer load without code of their own.",
            "Batches are padded on the right.",
        ]
        objective = getattr(self.loaded.config, "objective", None)
        if objective in ("mntp", "hybrid"):
            notes.append("It predicts a hidden token at the position before it (masked next-token prediction).")
        if objective == "hybrid":
            notes.append(
                "A share of its training blocks was causal (the hybrid objective of GPT-BERT): under a causal "
                "attention mask it predicts the next token."
            )
        return f"```python\n{example}```\n\n" + " ".join(notes)

    def _training(self, config: dict[str, Any], manifest: dict[str, Any]) -> list[tuple[str, str]]:
        corpus, recipe = manifest.get("corpus", {}), config.get("recipe") or {}
        budget = recipe.get("budget") or {}
        rows = {
            "corpus": config["corpus"]["name"],
            "text (SHA-256)": corpus.get("text"),
            "sample": f"{config['sample']['size']} {config['sample'].get('count', 'words')}",
            "words in the sample": _number(manifest.get("sample_words")),
            "sample (SHA-256)": manifest.get("sample_digest"),
            "tokenizer": config["tokenizer"]["name"],
            "vocabulary": _number(manifest.get("vocabulary")),
            "parameters": _number(manifest.get("parameters")),
            "seed": config["seed"],
            "recipe": recipe.get("name"),
            "budget": ", ".join(f"{value:g} {key}" if isinstance(value, float) else f"{value} {key}"
                                for key, value in budget.items() if value is not None),
            "words seen": _number(self.words_seen or manifest.get("words_seen")),
            "precision": config.get("precision"),
        }  # fmt: skip
        return [(name, str(value)) for name, value in rows.items() if value not in (None, "")]

    def _results(self, config: dict[str, Any]) -> str:
        parts = []
        if self.step is None:
            export = (config.get("recipe") or {}).get("export", "last")
            validation = exported_validation(self.run.metrics, export) if self.run.metrics.exists() else {}
            if (perplexity := validation.get("valid_ppl")) is not None:
                rate = validation.get("valid_oov_rate")
                unknown = "" if rate is None else f" (words that are `<unk>`: {rate:.1%})"
                parts.append(f"Perplexity per word on the validation split: {perplexity:,.2f}{unknown}.")
            if (perplexity := validation.get("valid_pseudo_ppl")) is not None:
                parts.append(f"Pseudo-perplexity per word on a part of the validation split: {perplexity:,.2f}.")
        if rows := self.accuracies():
            parts.append(_table(("benchmark", "method", "pairs", "accuracy", "95% interval"), rows))
            parts.append(
                "Accuracy is the mean over paradigms; the interval is Wilson's over new pairs of the same paradigms, "
                "for this one model: it says nothing of other seeds or samples."
            )
        return "\n\n".join(parts) or "Not scored."

    def accuracies(self) -> list[tuple[str, ...]]:
        """Return benchmark, method, pairs, accuracy and interval of each score file of this model."""
        end = "" if self.step is None else f"@{self.step}"
        rows: list[tuple[str, ...]] = []
        for items_file in sorted(self.run.scores("").glob(f"*/{ITEMS_FILE}")):
            folder = items_file.parent
            items, _ = read_items(folder)
            for path in sorted(folder.glob("*.parquet")):
                method = path.stem.partition("@")[0]
                if path.stem == method + end and method not in _NO_SCORES:
                    scores = with_phenomena(read_scores(path)[0], items)
                    rows += self._overall(benchmark_name(folder.name), method, scores)
        return rows

    def _overall(self, benchmark: str, method: str, scores: pd.DataFrame) -> Iterator[tuple[str, ...]]:
        for row in accuracies(scores, self.ties).query("level == 'overall'").itertuples():
            yield benchmark, method, f"{row.pairs:,}", f"{row.accuracy:.3f}", f"{row.low:.3f} to {row.high:.3f}"


_CAUSAL_EXAMPLE = """\
tokens = tokenizer("<a sentence>", return_tensors="pt")["input_ids"]  # begins with <eos>
with torch.no_grad():
    logprobs = model(tokens).logits.log_softmax(-1)[0, :-1].gather(-1, tokens[0, 1:, None])
"""
_NO_SCORES = ("items", "tokens", "topk")  # files beside scores of pairs


def _needs_code(loaded: LoadedModel) -> bool:
    """Return True if the model or its tokenizer comes with code, which trust_remote_code=True runs."""
    return not isinstance(loaded.model, HuggingFaceModel) or not is_serialisable(loaded.tokenizer)


def _packages(tokenizer: Tokenizer) -> list[str]:
    """Return the packages that the code of a tokenizer needs besides transformers."""
    return [] if is_serialisable(tokenizer) else ["rjieba" if tokenizer.config.kind == "jieba" else "nltk"]


def _all_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _pairs(values: dict[str, str | None]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in values.items() if value is not None]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; "|" in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
