"""Load scorers from run folders, snapshots, exports and Hugging Face models."""

from pathlib import Path

from corpora.tokenizers import EOS, load_tokenizer
from eval.scorers.base import Execution, Scorer
from eval.scorers.causal import CausalScorer
from eval.scorers.causal_models import NgramModel, StateModel
from eval.scorers.masked import MaskedScorer
from eval.scorers.network import CausalNetwork, Network
from eval.scorers.pretrained import load_of_any_kind, load_pretrained
from eval.scorers.tokens import OurTokens
from pairscale.errors import ConfigError, RunError
from pairscale.schema import checked
from train.models.config import HuggingFaceConfig, PretrainedConfig, architectures
from train.models.huggingface import HuggingFaceModel
from train.runs.folder import AGAIN, ModelFolder, RunFolder
from train.runs.model_folder import NGRAM, LoadedModel, load_model, read_description


def load_scorer(
    model: str | Path | RunFolder, batch_tokens: int = 8192, device: str = "cpu", progress: bool = False
) -> Scorer:
    """Load a model for scoring. It can be a model that pairscale trained, or a causal or masked Hugging Face model.

    Folders that pairscale wrote, such as RUN/model or an export, are read by pairscale's own code. Code in such a
    folder is never run.

    Args:
        model: A run folder, a model's folder, or the name of a model on the Hugging Face hub.
        batch_tokens: The maximum number of tokens to read at a time. It doesn't change the scores.
        device: The torch device to use, such as "cpu" or "cuda".
        progress: Whether to show a progress bar while scoring.

    Returns:
        A scorer for `judge` and `surprisals`. For its own methods, see eval.scorers.base.Scorer.

    Raises:
        RunError: If the run isn't finished, or its model is damaged.
        InputError: If a Hugging Face model can't be found or read.
        ConfigError: If this kind of model can't be scored.
    """
    execution = Execution(batch_tokens, device, progress)
    run = model if isinstance(model, RunFolder) else RunFolder(Path(model))
    if isinstance(model, RunFolder) or run.config.is_file():
        return run_scorer(run, execution)
    if (folder := ModelFolder(run.path)).description.is_file():
        return folder_scorer(folder, run.path.name, execution)
    return load_of_any_kind(str(model), execution)


def run_scorer(run: RunFolder, execution: Execution) -> Scorer:
    """Return the scorer of a run folder.

    Raises the same errors as `load_scorer`. Raises RunError if the folder's configuration would run a model's code,
    because someone else may have written it.
    """
    run.check_done()
    described = run.read_model_config()
    if "path" not in described:
        return folder_scorer(run.model, run.path.name, execution)
    if unsafe := [f"model.{key}=true" for key in ("trust_remote_code", "allow_pickle") if described.get(key)]:
        model = [f"model={described['name']}", f"model.path={described['path']}", *unsafe]
        raise RunError(
            f"{run.config}: {' and '.join(unsafe)} would run code that comes with the model. If you trust this code, "
            f"run python -m eval study={run.path.parent.name} {' '.join(model)}"
        )
    return pretrained_scorer(
        checked(described, PretrainedConfig, run.config, RunError, AGAIN, root="$.model"), execution
    )


def pretrained_scorer(config: PretrainedConfig, execution: Execution) -> Scorer:
    """Return the scorer of model=hf_causal or model=hf_masked.

    For a folder that pairscale wrote, the scores are exactly the same as for its run. However, it is read like any
    other model if the configuration sets trust_remote_code, a dtype other than fp32, 4-bit weights or a begin symbol.
    Raises the same errors as `load_pretrained`, and RunError if a folder that pairscale wrote is damaged.
    """
    folder = ModelFolder(Path(config.path).expanduser() / (config.revision or ""))
    is_ours = folder.description.is_file() and not config.revisions
    if is_ours and not (config.trust_remote_code or config.load_in_4bit or config.begin or config.dtype != "fp32"):
        scorer = folder_scorer(folder, folder.path.name, execution)
        if scorer.masked != config.masked:
            kind = "masked" if scorer.masked else "causal"
            raise ConfigError(f"model.path={config.path}: this is a {kind} model. Use model=hf_{kind}.")
        return scorer
    read = load_pretrained(config, execution)
    if is_ours and not read.masked:
        read.word_level = load_tokenizer(folder.tokenizer).word_level  # so that <eos> is scored as for the run
    return read


def folder_scorer(folder: ModelFolder, name: str, execution: Execution) -> Scorer:
    """Return the scorer of a model in a folder that pairscale wrote. Raises RunError if it is damaged."""
    if read_description(folder, (*architectures(), NGRAM))["kind"] == NGRAM:
        from train.ngram import load_ngram

        ngram = load_ngram(folder)
        tokens = OurTokens(ngram.tokenizer, ngram.tokenizer_digest)
        scorer = CausalScorer(NgramModel(ngram), tokens, name, execution.progress)
        scorer.sample_words = ngram.info.get("sample_words")
        return scorer
    return trained_scorer(load_model(folder), name, execution)


def trained_scorer(loaded: LoadedModel, name: str, execution: Execution) -> CausalScorer | MaskedScorer:
    """Return the scorer of a neural model that pairscale trained."""
    tokens = OurTokens(loaded.tokenizer, loaded.tokenizer_digest, loaded.masked)
    scorer: CausalScorer | MaskedScorer
    if not isinstance(loaded.model, HuggingFaceModel):
        scorer = CausalScorer(StateModel(loaded.model, loaded.digest, execution), tokens, name, execution.progress)
    elif loaded.masked:
        scorer = MaskedScorer(Network(loaded.model.network, name, execution, loaded.digest), tokens, execution.progress)
        assert isinstance(loaded.config, HuggingFaceConfig)
        scorer.shift = loaded.config.shift  # the configuration has it, so it isn't detected
    else:
        model = CausalNetwork(loaded.model.network, name, execution, loaded.digest, begin=EOS)
        scorer = CausalScorer(model, tokens, name, execution.progress)
    scorer.sample_words = loaded.info.get("sample_words")
    return scorer
