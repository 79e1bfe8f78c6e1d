"""Scorers of run folders, of their snapshots, and of models of Hugging Face."""

from pathlib import Path
from typing import Any

from eval.config import PretrainedConfig
from eval.scorers.base import Execution, Scorer
from eval.scorers.own import ModelScorer
from pairscale.errors import RunError
from pairscale.schema import checked
from train.models.huggingface_config import HuggingFaceConfig
from train.runs.export import LoadedModel, load_model
from train.runs.folder import AGAIN, RunFolder


def load_scorer(
    model: str | Path | RunFolder, batch_tokens: int = 8192, device: str = "cpu", progress: bool = False
) -> Scorer:
    """Return the scorer of a run folder, or of a causal or masked Hugging Face model by hub name or local folder.

    `batch_tokens`: most tokens that are read at a time. Raises RunError for a run that is not done or has a damaged
    model, and what eval.scorers.pretrained.load_pretrained raises.
    """
    execution = Execution(batch_tokens, device, progress)
    run = model if isinstance(model, RunFolder) else RunFolder(Path(model))
    if isinstance(model, RunFolder) or run.config.is_file():
        return run_scorer(run, execution)
    from eval.scorers.pretrained import load_of_any_kind

    return load_of_any_kind(str(model), execution)


def run_scorer(run: RunFolder, execution: Execution) -> Scorer:
    """Return the scorer of a run folder; raises as `load_scorer`."""
    run.check_done()
    described = run.read_model_config()
    if "path" in described:
        from eval.scorers.pretrained import load_pretrained

        _check_harmless(run, described)
        config = checked(described, PretrainedConfig, run.config, RunError, AGAIN, root="$.model")
        return load_pretrained(config, execution)
    if "order" in described:
        from eval.scorers.ngram import NgramScorer
        from train.ngram import load_ngram

        return NgramScorer(load_ngram(run), run.path.name, execution.progress)
    return trained_scorer(load_model(run), run.path.name, execution)


def trained_scorer(loaded: LoadedModel, name: str, execution: Execution) -> Scorer:
    """Return the scorer of a neural model that pairscale trained."""
    if isinstance(loaded.config, HuggingFaceConfig):
        from eval.scorers.trained_networks import network_scorer

        return network_scorer(loaded, loaded.config, name, execution)
    return ModelScorer(loaded, name, execution)


def _check_harmless(run: RunFolder, described: dict[str, Any]) -> None:
    """Raise RunError where a run folder, which may be someone else's, asks for code of theirs to be run."""
    unsafe = [f"model.{key}=true" for key in ("trust_remote_code", "allow_pickle") if described.get(key)]
    if unsafe:
        model = [f"model={described['name']}", f"model.path={described['path']}", *unsafe]
        raise RunError(
            f"{run.config}: {' and '.join(unsafe)} would run code that comes with the model, which only a command may "
            f"ask for: python -m eval study={run.path.parent.name} {' '.join(model)}"
        )
