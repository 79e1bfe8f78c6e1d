"""Find the files of a local corpus, and derive each file's format, domain and split from its name."""

import glob
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.config import BabylmCorpusConfig, ConlluCorpusConfig, CorpusConfig, FilesCorpusConfig
from corpora.sources.lines import COMPRESSIONS
from pairscale.command.schemas import listed
from pairscale.errors import ConfigError, InputError

FORMATS = (".txt", ".jsonl", ".parquet")
CONLLU = ".conllu"  # only corpus=conllu reads this format, and it doesn't read any other
_TREEBANK = re.compile(r"(.+)-(train|dev|valid|test)(-.+)?")  # Universal Dependencies: cs_pdt-ud-train-l
SPLIT_ENDINGS = {".train": "train", ".dev": "valid", ".valid": "valid", ".test": "test"}  # endings of plain text


@dataclass(frozen=True)
class SourceFile:
    """A text file, with what its name says about it."""

    path: Path
    name: str  # without the extensions for compression and format
    domain: str
    format: str  # one of FORMATS, or CONLLU
    split: str | None  # None if the name has no split


def source_files(config: FilesCorpusConfig) -> list[SourceFile]:
    """Return the files of a local corpus. Files that are listed by name don't have to exist.

    Raises InputError if a folder is missing, or a folder or glob contains no text. Raises ConfigError for unknown
    extensions, two files with the same name, and unclear splits.
    """
    files = []
    for entry in listed(config.path):
        paths = list(_expanded(entry, _endings(config)))
        if not paths:
            copy = (
                " To read a copy of the data set from the Hugging Face Hub, use corpus=babylm_hub."
                if isinstance(config, BabylmCorpusConfig)
                else ""
            )
            raise InputError(
                f"corpus.path={entry}: there are no files that end in {', '.join(_endings(config))}. Correct the path."
                f"{copy}"
            )
        files += [source_file(path, config) for path in paths]
    if not files:
        raise ConfigError(f"corpus.path={config.path}: this setting is empty. Use a file, a folder, a glob, or a list.")
    _check_names(files)
    _check_splits(files, config)
    return files


def source_file(path: Path, config: FilesCorpusConfig) -> SourceFile:
    """Derive a file's format, domain and split from its name. Raises ConfigError for an unknown extension.

    A name such as "childes.train" contains a split, and so does "childes.train.txt" in BabyLM's text data.
    """
    bare = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    if bare.suffix not in _endings(config) or (bare.suffix == ".parquet" and bare != path):
        raise ConfigError(
            f"corpus.path={path}: this file extension is not supported. Use {', '.join(_endings(config))}. All formats "
            f"except .parquet may be compressed ({', '.join(COMPRESSIONS)})."
        )
    if bare.suffix == CONLLU:
        part = _TREEBANK.fullmatch(bare.stem) if config.published_splits else None
        split = SPLIT_ENDINGS[f".{part[2]}"] if part else None
        return SourceFile(path, bare.stem, part[1] + (part[3] or "") if part else bare.stem, CONLLU, split)
    named = Path(bare.stem) if isinstance(config, BabylmCorpusConfig) and bare.suffix == ".txt" else bare
    if named.suffix in SPLIT_ENDINGS:
        split = SPLIT_ENDINGS[named.suffix] if config.published_splits else None
        return SourceFile(path, named.name, named.stem, ".txt", split)
    return SourceFile(path, bare.stem, bare.stem, bare.suffix, None)


def _endings(config: FilesCorpusConfig) -> tuple[str, ...]:
    return (CONLLU,) if isinstance(config, ConlluCorpusConfig) else (*FORMATS, *SPLIT_ENDINGS)


def check_domains(config: CorpusConfig, available: Iterable[str]) -> None:
    """Raise ConfigError if `corpus.domains` names a domain that is not available."""
    names = sorted(available)
    if unknown := sorted(set(config.domains or ()) - set(names)):
        raise ConfigError(
            f"corpus.domains: there is no domain {', '.join(unknown)} in {config.name}. Choose from {', '.join(names)}."
        )


def _expanded(entry: str, endings: Collection[str]) -> Iterator[Path]:
    """Yield the files of one entry of `corpus.path`, in alphabetical order if it is a folder or a glob."""
    path = Path(entry).expanduser()
    if path.is_dir():
        files = (file for file in sorted(path.rglob("*")) if file.is_file())
        yield from (file for file in files if _has_text(file.relative_to(path), endings))
    elif path.exists():
        yield path
    elif glob.has_magic(entry):
        for match in sorted(glob.glob(str(path), recursive=True)):
            yield from _expanded(match, endings)
    elif _has_text(path, endings):
        yield path  # the file doesn't have to exist
    else:
        raise InputError(f"corpus.path={path}: this file or folder does not exist. Correct the path.")


def _has_text(path: Path, endings: Collection[str]) -> bool:
    """Return True if a file has one of `endings`, and neither it nor any of its folders is hidden."""
    bare = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    hidden = any(part.startswith(".") for part in path.parts if part not in ("..", "."))
    return bare.suffix in endings and not hidden


def _check_names(files: Iterable[SourceFile]) -> None:
    """Raise ConfigError if two files have the same name, such as the files of BabyLM's 10M and 100M words."""
    paths: dict[tuple[str, str | None], Path] = {}
    for file in files:
        other = paths.setdefault((file.domain, file.split) if file.split else (file.name, None), file.path)
        if other is not file.path:
            raise ConfigError(
                f"corpus.path: {other} and {file.path} have the same name. Use only one of them, or list the folders "
                "to read, as in corpus.path=[train_10M,dev,test]."
            )


def _check_splits(files: list[SourceFile], config: FilesCorpusConfig) -> None:
    """Raise ConfigError if only some of the files belong to a split, or if none belongs to the train split."""
    splits = {file.split: file.path for file in files}
    if isinstance(config, BabylmCorpusConfig) and config.published_splits and set(splits) == {None}:
        raise ConfigError(
            f"corpus.path={config.path}: there are no *.train files, which BabyLM's text data contains. Correct the "
            "path, or use corpus=local to read other text."
        )
    if set(splits) == {None}:
        return
    if None in splits:
        split = next(path for split, path in splits.items() if split)
        raise ConfigError(
            f"corpus.path: the name of {split} contains a split, but the name of {splits[None]} doesn't. List the "
            "files to read, or read all files as one text with corpus.published_splits=false."
        )
    if "train" not in splits:
        raise ConfigError(
            f"corpus.path={config.path}: there is a file {next(iter(splits.values()))}, but no training file. Add one, "
            "or split these files at random with corpus.published_splits=false."
        )
