"""Write the code of our own models next to their weights, so that transformers can load their folders.

The files that travel with the weights are modeling.py, the file of the model's class, and what these import from
train/models. In the folder, they import each other. This module does not import transformers, so that runs of our own
models don't need it.
"""

import dataclasses
import inspect
import re
from pathlib import Path

from corpora.tokenizers import EOS
from pairscale.errors import ConfigError
from pairscale.files import write_json, write_text
from train.models.base import LanguageModel
from train.models.config import ModelConfig

_MODELING = Path(__file__).with_name("modeling.py")
_SIBLING = re.compile(r"^from train\.models\.(\w+) import ", re.MULTILINE)
_BODY = "from train.models.base import LanguageModel as Body  # in a model's folder: its own class"
_NOT_OURS = {"name", "seed"}  # values that don't describe a trained model


def file_of(model: LanguageModel) -> Path:
    """Return the file of a model's class. Raises ConfigError if a file in train/models has the same name."""
    own = Path(inspect.getfile(type(model)))
    taken = _MODELING.with_name(own.name)
    if taken.exists() and not taken.samefile(own):
        raise ConfigError(f"{own}: rename this file, because {own.name} in train/models is saved with the model, too.")
    return own


def write_description_and_code(folder: Path, model: LanguageModel, config: ModelConfig) -> None:
    """Write config.json, generation_config.json, and the files with the model's code that config.json names."""
    _write_code(folder, model)
    names = {field.name for field in dataclasses.fields(config)} | {"adaptive", "widths"}
    values = {name: getattr(config, name) for name in sorted(names - _NOT_OURS) if hasattr(config, name)}
    classes = {"AutoConfig": "Config", "AutoModel": "Model", "AutoModelForCausalLM": "ForCausalLM"}
    symbols = {"bos_token_id": EOS, "eos_token_id": EOS}
    described = {
        "model_type": "pairscale",
        "architectures": ["PairscaleForCausalLM"],
        "auto_map": {auto: f"{_MODELING.stem}.Pairscale{name}" for auto, name in classes.items()},
        "dtype": "float32",
        "vocab_size": model.vocabulary,
        **symbols,
    }
    write_json(folder / "config.json", described | values)
    write_json(folder / "generation_config.json", {"do_sample": True, "use_cache": False, **symbols})


def _write_code(folder: Path, model: LanguageModel) -> None:
    own = file_of(model)
    body = f"from .{own.stem} import {type(model).__name__} as Body"
    texts = {_MODELING.stem: _MODELING.read_text(encoding="utf-8").replace(_BODY, body)}
    files = [own]
    for file in files:
        texts[file.stem] = file.read_text(encoding="utf-8")
        siblings = [_MODELING.with_name(f"{found}.py") for found in _SIBLING.findall(texts[file.stem])]
        files += [sibling for sibling in siblings if sibling not in files]
    for stem, text in texts.items():
        write_text(folder / f"{stem}.py", _SIBLING.sub(r"from .\1 import ", text))
