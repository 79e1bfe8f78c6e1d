"""Our own models in folders that transformers loads, with the code of their classes beside the weights.

The files that travel are modeling.py, the file of the model's class, and what these import from train/models. In the
folder, they import each other.
"""

import dataclasses
import inspect
import re
from pathlib import Path

from pairscale.errors import ConfigError
from pairscale.files import write_text
from train.models import modeling
from train.models.base import LanguageModel
from train.models.config import ModelConfig

_SIBLING = re.compile(r"^from train\.models\.(\w+) import ", re.MULTILINE)
_BODY = "from train.models.base import LanguageModel as Body  # in a model's folder: its own class"
_NOT_OURS = {"name", "seed"}  # values that say nothing about a trained model


def of_transformers(model: LanguageModel, config: ModelConfig) -> modeling.PairscaleForCausalLM:
    """Return a model as one of transformers; the weights are the same tensors."""
    names = {field.name for field in dataclasses.fields(config)} | {"adaptive", "widths"}
    values = {name: getattr(config, name) for name in sorted(names - _NOT_OURS) if hasattr(config, name)}
    return modeling.PairscaleForCausalLM(modeling.PairscaleConfig(model.vocabulary, **values), model)


def write_code(folder: Path, model: modeling.PairscaleForCausalLM) -> None:
    """Write the files of a model's code, and name its classes in its configuration.

    Raises ConfigError if the file of a plug-in's class has the name of one of ours.
    """
    name = Path(modeling.__file__).stem
    classes = {"AutoConfig": modeling.PairscaleConfig, "AutoModelForCausalLM": modeling.PairscaleForCausalLM}
    model.config.auto_map = {auto: f"{name}.{one.__name__}" for auto, one in classes.items()}
    own = Path(inspect.getfile(type(model.model)))
    taken = Path(modeling.__file__).with_name(own.name)
    if taken.exists() and not taken.samefile(own):
        raise ConfigError(f"{own}: give this file another name, as a file of train/models with its name travels, too.")
    body = f"from .{own.stem} import {type(model.model).__name__} as Body"
    texts = {name: Path(modeling.__file__).read_text(encoding="utf-8").replace(_BODY, body)}
    files = [own]
    for file in files:
        texts[file.stem] = file.read_text(encoding="utf-8")
        siblings = [Path(modeling.__file__).with_name(f"{found}.py") for found in _SIBLING.findall(texts[file.stem])]
        files += [sibling for sibling in siblings if sibling not in files]
    for stem, text in texts.items():
        write_text(folder / f"{stem}.py", _SIBLING.sub(r"from .\1 import ", text))
