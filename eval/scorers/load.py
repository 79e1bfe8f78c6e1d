"""Scorers of run folders, of their snapshots and copies, and of models of Hugging Face."""

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
    """Return the scorer of a run folder, or of a causal or masked Hugging Face model by hub name or local folder.

    A folder that pairscale wrote, such as RUN/model or an export, is read by pairscale's own code, never by the code
    in it. `batch_tokens`: most tokens that are read at a time. Raises RunError for a run that is not done or has a
    damaged model, and what eval.scorers.pretrained.load_pretrained raises.
    """
    execution = Execution(batch_tokens, device, progress)
    run = model if isinstance(model, RunFolder) else RunFolder(Path(model))
    if isinstance(model, RunFolder) or run.config.is_file():
        return run_scorer(run, execution)
    if (folder := ModelFolder(run.path)).description.is_file():
        return folder_scorer(folder, run.path.name, execution)
    return load_of_any_kind(str(model), execution)


def run_scorer(run: RunFolder, execution: Execution) -> Scorer:
    """Return the scorer of a run folder; raises as `load_scorer`.

    Also RunError where the folder, which may be someone else's, asks for code of theirs to be run.
    """
    run.check_done()
    described = run.read_model_config()
    if "path" not in described:
        return folder_scorer(run.model, run.path.name, execution)
    if unsafe := [f"model.{key}=true" for key in ("trust_remote_code", "allow_pickle") if described.get(key)]:
        model = [f"model={described['name']}", f"model.path={described['path']}", *unsafe]
        raise RunError(
            f"{run.config}: {' and '.join(unsafe)} would run code that comes with the model, which only a command may "
            f"ask for: python -m eval study={run.path.parent.name} {' '.join(model)}"
        )
    return pretrained_scorer(
        checked(described, PretrainedConfig, run.config, RunError, AGAIN, root="$.model"), execution
    )


def pretrained_scorer(config: PretrainedConfig, execution: Execution) -> Scorer:
    """Return the scorer of model=hf_causal or model=hf_masked; raises as `load_pretrained`, and RunError.

    A folder that pairscale wrote scores as its run does, to the last bit. With model.trust_remote_code=true, another
    dtype than fp32 or a begin symbol of one's own, it is read as others' are.
    """
    folder = ModelFolder(Path(config.path).expanduser() / (config.revision or ""))
    is_ours = folder.description.is_file() and not config.revisions
    if is_ours and not (config.trust_remote_code or config.load_in_4bit or config.begin or config.dtype != "fp32"):
        scorer = folder_scorer(folder, folder.path.name, execution)
        if scorer.masked != config.masked:
            kind = "masked" if scorer.masked else "causal"
            raise ConfigError(f"model.path={config.path}: a {kind} model; give model=hf_{kind}")
        return scorer
    read = load_pretrained(config, execution)
    if is_ours and not read.masked:
        read.word_level = load_tokenizer(folder.tokenizer).word_level  # so that <eos> is scored as in its run
    return read


def folder_scorer(folder: ModelFolder, name: str, execution: Execution) -> Scorer:
    """Return the scorer of a model in a folder that pairscale wrote. Raises RunError for a damaged one."""
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
        scorer.shift = loaded.config.shift  # known, so that it need not be probed
    else:
        model = CausalNetwork(loaded.model.network, name, execution, loaded.digest, begin=EOS)
        scorer = CausalScorer(model, tokens, name, execution.progress)
    scorer.sample_words = loaded.info.get("sample_words")
    return scorer
