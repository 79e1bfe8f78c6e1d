"""Import of checkpoints written by the authors' own code, compared with that code token by token.

    python tests/bench/authors_code.py --colorless CHECKOUT --transformer-xl CHECKOUT [--steps N]

CHECKOUTs of github.com/facebookresearch/colorlessgreenRNNs and github.com/kimiyoung/transformer-xl. Their classes train
small models for some steps, save them with torch.save in both formats, whole and as a state_dict, and compute ln p of
each token of a stream read in segments. `import_run` turns the files into run folders. The script prints the largest
difference in nats. The copies that run differ from the checkout in two expressions that torch no longer supports:
`.byte()` masks are `.bool()`, and the unused CUDA version is 0.
"""

import argparse
import importlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[2]))

from corpora.tokenizers import UNK
from pairscale.command.compose import compose
from train.import_checkpoint.run import import_run
from train.runs.model_folder import load_model

WORDS = 400
SEGMENT = 12
STREAM = 10 * SEGMENT + 5
REPLACED = {".byte()": ".bool()", "torch.version.cuda": "'0.0'"}
BASE = {"n_layer": 3, "n_head": 4, "d_model": 32, "d_head": 10, "d_inner": 48, "dropout": 0.1, "dropatt": 0.1}
BASE |= {"tgt_len": SEGMENT, "ext_len": 0, "mem_len": 20}
CUT = [50, 120, 250]
TXL_MODELS: dict[str, dict[str, Any]] = {
    "plain softmax": {},
    "untied": {"tie_weight": False},
    "no memory": {"mem_len": 0},
    "pre_lnorm": {"pre_lnorm": True},
    "same_length, clamp_len": {"same_length": True, "clamp_len": 9},
    "embeddings of 24": {"d_embed": 24, "tie_projs": [False]},
    "adaptive (WikiText-103 base)": {"cutoffs": CUT, "tie_projs": [False, True, True, True]},
    "adaptive, untied": {"cutoffs": CUT, "tie_weight": False},
    "adaptive, embeddings of 24": {"cutoffs": CUT, "d_embed": 24, "tie_projs": [False, True, True, True]},
    "adaptive, div_val 2": {"cutoffs": CUT, "div_val": 2, "tie_projs": [False, True, True, True]},
    "adaptive, div_val 4 (One Billion Words)": {"cutoffs": CUT, "div_val": 4, "d_embed": 128, "tie_projs": [False] * 4},
    "adaptive, div_val 2, all options": {
        "cutoffs": CUT,
        "div_val": 2,
        "d_embed": 48,
        "tie_projs": [False, True, True, True],
        "pre_lnorm": True,
        "same_length": True,
        "clamp_len": 15,
    },
}


def run_copy(sources: list[Path], folder: Path) -> None:
    """Copy files to an importable folder, with REPLACED applied."""
    folder.mkdir()
    for source in sources:
        text = source.read_text(encoding="utf-8")
        for old, new in REPLACED.items():
            text = text.replace(old, new)
        (folder / source.name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))


def train(model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], steps: int) -> nn.Module:
    """Train for some steps on simulated tokens, so that no weight has its initial value; return the model."""
    for name, weight in model.named_parameters():
        if weight.dim() > 1 or name.endswith("_bias"):
            nn.init.normal_(weight, 0.0, 0.15)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = np.random.default_rng(0)
    for _ in range(steps):
        tokens = torch.from_numpy((WORDS * generator.random((SEGMENT + 1, 8)) ** 3).astype(np.int64))
        optimizer.zero_grad()
        loss(tokens[:-1], tokens[1:]).backward()
        optimizer.step()
    return model.eval()


def save_in_each_format(model: nn.Module, path: Path) -> Iterator[tuple[str, Path]]:
    """Save a model in each format; yield the format and the path."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for old in (False, True):
            for what, value in (("model", model), ("state_dict", model.state_dict())):
                torch.save(value, path, _use_new_zipfile_serialization=not old)
                yield f"{what}, {'old' if old else 'new'} format", path


@torch.no_grad()
def imported_logprobs(folder: Path, name: str, words: list[str], stream: Tensor, *overrides: str) -> Tensor:
    """Return ln p of each token of the stream but the first, by the imported model."""
    values = [f"model.checkpoint={folder}/model.pt", f"model.name={name}", "study=s", f"paths.runs={folder}/runs"]
    loaded = load_model(import_run(compose("import_checkpoint", [*values, *overrides])).model)
    ids = {loaded.tokenizer.token(index): index for index in range(len(loaded.tokenizer))}
    assert loaded.tokenizer.token(UNK) == "<unk>"
    tokens = torch.tensor([[ids[words[index]] for index in stream.tolist()]])
    state, logprobs = loaded.model.initial_state(1), []
    for start in range(0, len(stream) - 1, SEGMENT):
        targets = tokens[0, start + 1 : start + 1 + SEGMENT]
        hidden, state = loaded.model(tokens[:, start : start + len(targets)], state)
        logprobs.append(loaded.model.logprobs(hidden[0], targets))
    return torch.cat(logprobs)


def compare(
    label: str, name: str, model: nn.Module, expected: Tensor, words: list[str], stream: Tensor, bare: list[str]
) -> float:
    """Import a model saved in each format and print the largest difference.

    `bare` are the overrides that a state_dict needs, as it has only weights.
    """
    worst = 0.0
    for number in range(4):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
            ways = save_in_each_format(model, folder / "model.pt")
            for _ in range(number + 1):
                way, _ = next(ways)
            overrides = bare if way.startswith("state_dict") else []
            logprobs = imported_logprobs(folder, name, words, stream, *overrides)
        worst = max(worst, (logprobs - expected).abs().max().item())
    print(f"{label:55s} {len(expected):4d} tokens, mean {expected.mean():7.3f} nats, largest difference {worst:.1e}")
    return worst


def colorless(checkout: Path, folder: Path, words: list[str], stream: Tensor, steps: int) -> float:
    """Compare their LSTM, tied and untied."""
    run_copy([checkout / "src/language_models/model.py"], folder)
    module = importlib.import_module("model")
    worst = 0.0
    for tied in (False, True):
        torch.manual_seed(1)
        model = module.RNNModel("LSTM", WORDS, 24, 24 if tied else 36, 2, 0.2, tied)

        def loss(inputs: Tensor, targets: Tensor, model: nn.Module = model) -> Tensor:
            output, _ = model(inputs, model.init_hidden(inputs.shape[1]))
            return nn.functional.cross_entropy(output.view(-1, WORDS), targets.reshape(-1))

        train(model, loss, steps)
        with torch.no_grad():
            output, _ = model(stream[:-1, None], model.init_hidden(1))
            expected = output[:, 0].log_softmax(-1).gather(1, stream[1:, None])[:, 0]
        label = f"colorlessgreenRNNs, {'tied' if tied else 'untied'}"
        worst = max(worst, compare(label, "lstm", model, expected, words, stream, []))
    return worst


def transformer_xl(checkout: Path, folder: Path, words: list[str], stream: Tensor, steps: int) -> float:
    """Compare their Transformer-XLs."""
    names = ["mem_transformer.py", "utils/proj_adaptive_softmax.py", "utils/log_uniform_sampler.py"]
    run_copy([checkout / "pytorch" / name for name in names], folder)
    module = importlib.import_module("mem_transformer")
    worst = 0.0
    for label, values in TXL_MODELS.items():
        torch.manual_seed(1)
        model = module.MemTransformerLM(WORDS, **{**BASE, **values})

        def loss(inputs: Tensor, targets: Tensor, model: nn.Module = model) -> Tensor:
            mean: Tensor = model(inputs, targets)[0].mean()
            return mean

        train(model, loss, steps)
        expected, memories = [], model.init_mems()
        with torch.no_grad():
            for start in range(0, len(stream) - 1, SEGMENT):
                targets = stream[start + 1 : start + 1 + SEGMENT]
                hidden, memories = model._forward(stream[start : start + len(targets), None], memories)
                expected.append(-model.crit(hidden[:, 0], targets, keep_order=True))
        bare = [f"model.memory={model.mem_len}", f"model.same_length={model.same_length}"]
        bare += [f"model.clamp_len={model.clamp_len}", f"model.pre_norm={values.get('pre_lnorm', False)}"]
        if "cutoffs" in values:
            bare.append(f"model.cutoffs={values['cutoffs']}")
        difference = compare(f"transformer-xl, {label}", "txl", model, torch.cat(expected), words, stream, bare)
        worst = max(worst, difference)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--colorless", type=Path, help="checkout of facebookresearch/colorlessgreenRNNs")
    parser.add_argument("--transformer-xl", type=Path, help="checkout of kimiyoung/transformer-xl")
    parser.add_argument("--steps", type=int, default=20, help="training steps of each model")
    arguments = parser.parse_args()
    # The special words have other ids than ours, inside the head of the softmax.
    words = [f"word{index}" for index in range(WORDS)]
    words[7], words[3] = "<eos>", "<unk>"
    stream = torch.randint(WORDS, (STREAM,), generator=torch.Generator().manual_seed(2))
    stream[0] = 7
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.colorless:
            work = (arguments.colorless, Path(temporary) / "colorless", words, stream, arguments.steps)
            worst = max(worst, colorless(*work))
        if arguments.transformer_xl:
            work = (arguments.transformer_xl, Path(temporary) / "txl", words, stream, arguments.steps)
            worst = max(worst, transformer_xl(*work))
    print(f"largest of all {worst:.1e} nats; 1e-4 is allowed")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
