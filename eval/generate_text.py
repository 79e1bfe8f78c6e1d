"""Text that language models write: `python -m eval.generate_text`.

Tokens are drawn from a model's distribution, after temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al.
2020). The same seed, model and options draw the same text on the same machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from eval.config import EvalConfig, PretrainedConfig
from pairscale.command.main import main
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.hub import import_transformers
from train.runs.folder import study_runs

if TYPE_CHECKING:
    from train.runs.model_folder import LoadedModel

console = Console(highlight=False)


def run(config: EvalConfig) -> None:
    """Print `config.count` texts of the model of model=hf_causal, or of each run of `config.study`.

    Raises ConfigError for a model that writes no text, RunError where a study has no run that does.
    """
    import_transformers()
    for name, model, tokenizer in _models(config):
        console.print(name, style="bold", markup=False, soft_wrap=True)
        for text in texts(model, tokenizer, config):
            console.print(text, markup=False, soft_wrap=True)


def texts(model: Any, tokenizer: Any, config: EvalConfig) -> Iterator[str]:
    """Yield `config.count` texts of a model of transformers: the prompt and up to `config.length` tokens.

    A text ends before it where the model ends it. Raises InputError for a prompt that leaves the model no place.
    """
    import torch

    from eval.scorers.tokens import begin_symbol

    begin = begin_symbol(tokenizer, None, str(tokenizer.name_or_path))
    prompt = [begin, *tokenizer(config.prompt, add_special_tokens=False)["input_ids"]]
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    length = config.length if positions is None else min(config.length, positions - len(prompt))
    if length < 1:
        raise InputError(f"prompt: has {len(prompt):,} tokens with its begin symbol, the model reads {positions:,}")
    torch.manual_seed(config.seed)
    for _ in range(config.count):
        tokens = torch.tensor([prompt], device=model.device)
        written = model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=True,
            temperature=config.temperature,
            top_k=config.top_k or 0,
            top_p=config.top_p,
            max_new_tokens=length,
            pad_token_id=begin,
        )
        yield str(tokenizer.decode(written[0], skip_special_tokens=True)).strip()


def _models(config: EvalConfig) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, model and tokenizer of each model."""
    from train.runs.model_folder import load_model

    if isinstance(config.model, PretrainedConfig):
        yield _pretrained(config, config.model)
        return
    if config.study is None:
        raise ConfigError("study=null: name a study, or give model=hf_causal model.path=NAME")
    count = 0
    for run in study_runs(config.paths.runs, config.study, config.run):
        reason = None if run.done else "not done"
        if run.done and not run.model.weights.exists():
            reason = "not a network that was trained here"
        loaded = load_model(run.model) if reason is None else None
        if loaded is None or loaded.masked:
            say(f"{run.path.name}: {reason or 'a masked model'}", "writes no text", "yellow")
            continue
        count += 1
        yield run.path.name, *_of_transformers(loaded)
    if not count:
        raise RunError(f"study={config.study}: no run in {Path(config.paths.runs) / config.study} writes text")


def _pretrained(config: EvalConfig, model: PretrainedConfig) -> tuple[str, Any, Any]:
    from eval.scorers.base import Execution
    from eval.scorers.causal import CausalScorer
    from eval.scorers.load import own_folder, pretrained_scorer
    from eval.scorers.network import CausalNetwork
    from eval.scorers.tokens import HubTokens
    from train.runs.model_folder import load_model

    if (folder := own_folder(model)) and folder.weights.exists() and not (loaded := load_model(folder)).masked:
        return folder.path.name, *_of_transformers(loaded)
    scorer = pretrained_scorer(model, Execution.of(config))
    if not isinstance(scorer, CausalScorer):
        raise ConfigError(f"model={model.name}: a model of this kind writes no text; give model=hf_causal")
    network, tokens = scorer.model, scorer.tokens
    assert isinstance(network, CausalNetwork)
    assert isinstance(tokens, HubTokens)
    return scorer.name, network.model, tokens.tokenizer


def _of_transformers(loaded: LoadedModel) -> tuple[Any, Any]:
    from corpora.fast_tokenizers import fast_tokenizer
    from train.models.travel import of_transformers

    return of_transformers(loaded.model, loaded.config).train(False), fast_tokenizer(loaded.tokenizer)


if __name__ == "__main__":
    main("generate_text", run)
