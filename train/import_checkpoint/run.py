"""Import a published checkpoint and its vocabulary as a run folder, which can be scored like any other."""

from pathlib import Path

from pairscale.command.schemas import yaml_of
from pairscale.console import say
from pairscale.errors import ConfigError, InputError, RunError
from pairscale.files import sha256_file, write_text
from train.config import RunConfig, config_digest
from train.import_checkpoint.networks import lstm, read_vocabulary, transformer_xl
from train.import_checkpoint.pickles import Checkpoint, one_line_errors, read_checkpoint
from train.models.build import build_model, without_weights
from train.models.config import ImportedConfig
from train.runs.folder import DONE, RunFolder
from train.runs.model_folder import save_model
from train.runs.provenance import git_state, versions

LSTM = "colorlessgreenRNNs"
TXL = "transformer-xl/pytorch"


def import_run(config: RunConfig) -> RunFolder:
    """Import the checkpoint in config.model (an ImportedConfig) unless it was imported before, and return its folder.

    Raises:
        InputError: if files are missing, damaged or unsafe, or do not match each other.
        ConfigError: if values do not match the files.
        RunError: if the run was imported from a different file with the same name.
    """
    model = config.model
    if not isinstance(model, ImportedConfig):
        raise ConfigError(f"model={model.name}: this model can't be imported. Use model=imported for a checkpoint.")
    path = Path(model.checkpoint).expanduser()
    if not path.is_file():
        if model.checkpoint.startswith("None/"):  # ${paths.data} is not set
            inside = model.checkpoint.removeprefix("None/")
            raise InputError(f"model.checkpoint: PAIRSCALE_DATA is not set. Set it to the folder with {inside}.")
        raise InputError(
            f"model.checkpoint={model.checkpoint}: this file does not exist. Put the authors' checkpoint and its "
            "vocab.txt there (github.com/facebookresearch/colorlessgreenRNNs and github.com/kimiyoung/transformer-xl "
            "say where to download theirs), or correct the path."
        )
    digest = sha256_file(path)
    folder = RunFolder.of(config)
    if folder.done:
        _check_source(folder, path, digest)
        say(f"{folder.path} (nothing to do)", "Already imported:", "green")
        return folder
    checkpoint = read_checkpoint(path)
    importer = _importer(path, checkpoint)
    with one_line_errors(path):
        vocabulary = read_vocabulary(model, one_a_line=importer == TXL)
        imported, weights = (lstm if importer == LSTM else transformer_xl)(checkpoint, model, vocabulary)
        tokenizer = vocabulary.tokenizer(model.tokenizer)
        with without_weights():  # they are loaded below
            built = build_model(imported, len(tokenizer))
        built.load_state_dict(weights, assign=True)
    parameters = sum(parameter.numel() for parameter in built.parameters())
    source = {
        "importer": importer,
        "checkpoint": str(path),
        "checkpoint_sha256": digest,
        "vocabulary": str(vocabulary.path),
        "vocabulary_sha256": sha256_file(vocabulary.path),
    }
    with folder.locked():
        write_text(folder.config, yaml_of(config))
        save_model(folder.model, built, imported, tokenizer, {"source": source})
        folder.update_manifest(
            status=DONE,
            config_digest=config_digest(config),
            git=git_state(),
            versions=versions(),
            digest=sha256_file(folder.model.weights),
            source=source,
            parameters=parameters,
            vocabulary=len(tokenizer),
        )
    sizes = f"{parameters:,} parameters, {len(tokenizer):,} words"
    say(f"{folder.path} ({sizes}, from {importer})", "Imported:", "green")
    return folder


def _importer(path: Path, checkpoint: Checkpoint) -> str:
    """Return the name of the code that wrote a checkpoint, LSTM or TXL. Raises InputError for other models."""
    if "encoder.weight" in checkpoint.tensors:
        return LSTM
    if any(name.startswith("word_emb.") for name in checkpoint.tensors):
        return TXL
    names = ", ".join(list(checkpoint.tensors)[:3])
    raise InputError(
        f"{path}: this checkpoint is neither from {LSTM} (it has no encoder.weight) nor from {TXL} (no word_emb). "
        f"It has {names}."
    )


def _check_source(folder: RunFolder, path: Path, digest: str) -> None:
    """Raise RunError if a finished run was imported from a different file than the one at `path` now."""
    imported = folder.read_manifest()["source"]["checkpoint_sha256"]
    if imported != digest:
        raise RunError(
            f"{folder.path}: this run was imported from a file with the digest {imported[:8]}, but {path} now has "
            f"{digest[:8]}. Choose another study, or remove the run's folder."
        )
