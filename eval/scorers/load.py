"""Loading the scorer of a run folder, or of a model of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eval.config import PretrainedConfig
from eval.scorers.base import Scorer
from eval.scorers.own import ModelScorer
from pairscale.errors import RunError
from pairscale.schema import checked
from train.runs.export import load_model
from train.runs.folder import AGAIN, RunFolder


def load_scorer(
    model: str | Path | RunFolder, batch_tokens: int = 8192, device: str = "cpu", progress: bool = False
) -> Scorer:
    """The scorer of a run folder, or of a Hugging Face causal model by hub name or local folder.

    `batch_tokens`: most tokens that are read at a time. Raises RunError for a run without a model or with a damaged
    one, and what eval.scorers.pretrained.load_pretrained raises.
    """
    from eval.scorers.pretrained import load_pretrained  # here, because it builds on what is above

    run = model if isinstance(model, RunFolder) else RunFolder(Path(model))
    if not isinstance(model, RunFolder) and not run.config.is_file():
        config = PretrainedConfig(name="hf_causal", kind="causal", path=str(model), dtype="fp32")
        return load_pretrained(config, batch_tokens, device, progress)
    described = run.read_model_config()
    if "path" in described:
        _check_harmless(run, described)
        pretrained = checked(described, PretrainedConfig, run.config, RunError, AGAIN, root="$.model")
        return load_pretrained(pretrained, batch_tokens, device, progress)
    if "order" in described:
        from eval.scorers.ngram import NgramScorer
        from train.ngram import load_ngram

        return NgramScorer(load_ngram(run), run.path.name, progress)
    return ModelScorer(load_model(run), run.path.name, batch_tokens, device, progress)


def _check_harmless(run: RunFolder, described: dict[str, Any]) -> None:
    """Raise RunError where a run folder, which may be someone else's, asks for code of theirs to be run."""
    asked = [f"model.{key}=true" for key in ("trust_remote_code", "allow_pickle") if described.get(key)]
    if asked:
        model = [f"model={described['name']}", f"model.path={described['path']}", *asked]
        raise RunError(
            f"{run.config}: {' and '.join(asked)} would run code that comes with the model, which only a command may "
            f"ask for: python -m eval study={run.path.parent.name} {' '.join(model)}"
        )
