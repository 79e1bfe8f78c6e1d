"""Build small untrained models with their tokenizers and run folders, for tests of scoring."""

import json
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast

from corpora.config import TokenizerConfig
from corpora.tokenization_pairscale import PairscaleTokenizer
from corpora.tokenizers import fit_tokenizer
from eval.config import EvalConfig
from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.load import trained_scorer
from pairscale.command.schemas import yaml_of
from train.models.build import build_model
from train.models.config import LstmConfig, ModelConfig, TxlConfig
from train.runs.folder import DONE, UNFINISHED, ModelFolder, RunFolder
from train.runs.model_folder import LoadedModel, save_model

TEXT = ["The cat sleeps .", "The cats sleep near a dog .", "A dog that sees the cats barks .", "Who saw the dog ?"]
LSTM = LstmConfig(name="lstm_test", embedding=8, hidden=12, layers=2, dropout=0.5, tied=False)
TXL = TxlConfig(
    name="txl_test", layers=2, d_model=16, heads=2, d_head=8, d_inner=24, dropout=0.5, attention_dropout=0.5,
    memory=60, same_length=False, clamp_len=None, tied=True, initial_sd=0.02,
)  # fmt: skip


def random_model(config: ModelConfig, kind: str = "word", seed: int = 0, vocab_size: int | None = None) -> LoadedModel:
    """Return a model whose random weights are so large that its probabilities are far from uniform."""
    schema = TokenizerConfig(
        name=kind, kind=kind, vocab_size=vocab_size, fit_on="train", fit_sentences=100, character_coverage=1.0
    )
    tokenizer = fit_tokenizer(schema, TEXT, len(TEXT))
    torch.manual_seed(seed)
    model = build_model(config, len(tokenizer)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
    info = {"sample_words": 1000, "step": 3}
    return LoadedModel(model, tokenizer, config, info, f"digest-{seed}", f"tokenizer-{kind}")


def saved(folder: Path, loaded: LoadedModel) -> None:
    """Write the folder of a model."""
    save_model(ModelFolder(folder), loaded.model, loaded.config, loaded.tokenizer, loaded.info)


def saved_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Read the tokenizer in a model's folder, using its own class."""
    described = json.loads((folder / "tokenizer_config.json").read_text())
    kind = PairscaleTokenizer if "auto_map" in described else PreTrainedTokenizerFast
    return kind.from_pretrained(folder)


def simulated_run(config: EvalConfig, loaded: LoadedModel, done: bool = True) -> RunFolder:
    """Write the run folder of `config` like training does, with `loaded` as its model."""
    run = RunFolder.of(config)
    run.path.mkdir(parents=True, exist_ok=True)
    Path(run.config).write_text(yaml_of(config))
    if done:
        save_model(run.model, loaded.model, loaded.config, loaded.tokenizer, loaded.info)
    run.update_manifest(status=DONE if done else UNFINISHED)
    return run


def own_scorer(loaded: LoadedModel, batch_tokens: int = 100) -> CausalScorer:
    return trained_scorer(loaded, "m", Execution(batch_tokens))
