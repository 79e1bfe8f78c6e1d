"""Text that language models write: `python -m eval.generate_text`.

Tokens are drawn by transformers from a model's distribution, after temperature, top-k (Fan et al. 2018) and top-p
(Holtzman et al. 2020). The same seed, model and options draw the same text on the same machine.
"""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from eval.config import EvalConfig, PretrainedConfig
from pairscale.command.main import main
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.hub import import_transformers
from train.runs.folder import ModelFolder, study_runs


def run(config: EvalConfig) -> None:
    """Print `config.count` texts of the model of model=hf_causal, or of each run of `config.study`.

    Raises ConfigError without a model or study, RunError if no model there writes text.
    """
    import_transformers()
    console, some = Console(highlight=False, markup=False, soft_wrap=True), False
    for name, model, tokenizer in _models(config):
        some = True
        console.print(name, style="bold")
        for text in texts(model, tokenizer, config):
            console.print(text)
    if not some:
        raise RunError(f"study={config.study}: none of its models writes text.")


def texts(model: Any, tokenizer: Any, config: EvalConfig) -> Iterator[str]:
    """Yield `config.count` texts of a model of transformers: the prompt and up to `config.length` tokens.

    A text ends before it where the model ends it. Raises InputError for a prompt that leaves the model no place.
    """
    import torch

    from eval.scorers.tokens import begin_symbol

    begin = begin_symbol(tokenizer, None, str(tokenizer.name_or_path))
    prompt = torch.tensor([[begin, *tokenizer(config.prompt, add_special_tokens=False)["input_ids"]]])
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 10**9
    length = min(config.length, positions - prompt.shape[1])
    if length < 1:
        raise InputError(
            f"prompt: has {prompt.shape[1]:,} tokens with its begin symbol, the model reads {positions:,}."
        )
    drawing = {"do_sample": True, "temperature": config.temperature, "top_k": config.top_k or 0, "top_p": config.top_p}
    prompt = prompt.to(model.device)
    torch.manual_seed(config.seed)
    for _ in range(config.count):
        written = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=length, pad_token_id=begin, **drawing
        )
        yield str(tokenizer.decode(written[0], skip_special_tokens=True)).strip()


def _models(config: EvalConfig) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, model and tokenizer of each causal model, and say of other runs that they write no text."""
    from corpora.fast_tokenizers import fast_tokenizer
    from eval.scorers.base import Execution
    from eval.scorers.load import own_folder
    from eval.scorers.pretrained import load_pretrained
    from train.models.travel import of_transformers
    from train.runs.model_folder import load_model

    folders: dict[str, ModelFolder | None]
    if isinstance(config.model, PretrainedConfig):
        if config.model.kind != "causal":
            raise ConfigError(f"model={config.model.name}: a model of this kind writes no text; give model=hf_causal.")
        folder = own_folder(config.model)
        if folder is None:
            scorer: Any = load_pretrained(config.model, Execution.of(config))
            yield scorer.name, scorer.model.model, scorer.tokens.tokenizer
            return
        folders = {folder.path.name: folder}
    elif config.study is None:
        raise ConfigError("study=null: name a study, or give model=hf_causal model.path=NAME.")
    else:
        runs = study_runs(config.paths.runs, config.study, config.run)
        folders = {run.path.name: run.model if run.done else None for run in runs}
    for name, folder in folders.items():
        loaded = load_model(folder) if folder and folder.weights.exists() else None
        if loaded is None or loaded.masked:
            say(f"{name}: not a causal network whose training is done", "writes no text", "yellow")
            continue
        model = of_transformers(loaded.model, loaded.config).train(False)
        yield name, model, fast_tokenizer(loaded.tokenizer)


if __name__ == "__main__":
    main("generate_text", run)
