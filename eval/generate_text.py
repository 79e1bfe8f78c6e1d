"""Text that language models write: `python -m eval.generate_text`.

Tokens are drawn from a model's distribution, after temperature, top-k (Fan et al. 2018) and top-p (Holtzman et al.
2020). The same seed, model and options draw the same text on the same machine.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from eval.config import EvalConfig, PretrainedConfig
from pairscale.command.main import main
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.hub import import_transformers
from train.runs.folder import RunFolder, study_runs

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

    from eval.scorers.hf_tokenizers import begin_symbol

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
    from eval.scorers.base import Execution
    from eval.scorers.causal import CausalScorer

    if isinstance(config.model, PretrainedConfig):
        from eval.scorers.pretrained import load_pretrained

        scorer = load_pretrained(config.model, Execution.of(config))
        if not isinstance(scorer, CausalScorer):
            raise ConfigError(f"model={config.model.name}: a masked model writes no text; give model=hf_causal")
        yield scorer.name, scorer.model, scorer.tokenizer
        return
    if config.study is None:
        raise ConfigError("study=null: name a study, or give model=hf_causal model.path=NAME")
    from eval.export.folder import exported_tokenizer, is_masked, network_of
    from train.runs.export import load_model

    count = 0
    for folder in study_runs(config.paths.runs, str(config.study), config.run):
        loaded, reason = None, _refusal(folder)
        if reason is None:
            loaded = load_model(folder)
            reason = "a masked model" if is_masked(loaded) else None
        if loaded is None or reason is not None:
            say(f"{folder.path.name}: {reason}", "writes no text", "yellow")
            continue
        count += 1
        yield folder.path.name, network_of(loaded), exported_tokenizer(loaded.tokenizer)
    if not count:
        raise RunError(f"study={config.study}: no run in {Path(config.paths.runs) / config.study} writes text")


def _refusal(folder: RunFolder) -> str | None:
    """Return why a run has no weights of ours that write text; None if it has."""
    if not folder.done:
        return "not done"
    if not folder.weights.exists():
        return "not a network that was trained here"
    return None


if __name__ == "__main__":
    main("generate_text", run)
