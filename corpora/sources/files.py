"""The files of a local corpus, named one by one, by folder or by glob: the format, domain and split of each."""

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
CONLLU = ".conllu"  # alone: other sources do not read it, nor corpus=conllu theirs
_TREEBANK = re.compile(r"(.+)-(train|dev|valid|test)(-.+)?")  # as Universal Dependencies names parts: cs_pdt-ud-train-l
SPLIT_ENDINGS = {".train": "train", ".dev": "valid", ".valid": "valid", ".test": "test"}  # of plain text


@dataclass(frozen=True)
class SourceFile:
    """A file with text. name: without the endings of compression and format; split: None if its name has none."""

    path: Path
    name: str
    domain: str
    format: str  # FORMATS, or CONLLU
    split: str | None


def source_files(config: FilesCorpusConfig) -> list[SourceFile]:
    """Return the files of a local corpus; those named one by one need not exist.

    Raises InputError for a missing folder, a folder or glob without text, ConfigError for unknown endings, two files of
    a name, and splits that are unclear.
    """
    files = []
    for entry in listed(config.path):
        paths = list(_expanded(entry, _endings(config)))
        if not paths:
            copy = (
                "; a copy of its data set of the hub is corpus=babylm_hub"
                if isinstance(config, BabylmCorpusConfig)
                else ""
            )
            raise InputError(f"corpus.path: no file that ends in {', '.join(_endings(config))} in {entry}{copy}")
        files += [source_file(path, config) for path in paths]
    if not files:
        raise ConfigError(f"corpus.path={config.path}: must be a file, a folder, a glob, or a list of them")
    _check_names(files)
    _check_splits(files, config)
    return files


def source_file(path: Path, config: FilesCorpusConfig) -> SourceFile:
    """Return a file as its name describes it. Raises ConfigError for an ending that has no format.

    Names such as "childes.train" name a split; so does "childes.train.txt" in BabyLM's text data.
    """
    bare = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    if bare.suffix not in _endings(config) or (bare.suffix == ".parquet" and bare != path):
        raise ConfigError(
            f"corpus.path={path}: must end in {', '.join(_endings(config))}; all but .parquet may be followed by "
            f"{', '.join(COMPRESSIONS)}"
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
            f"corpus.domains: no domain {', '.join(unknown)} in {config.name}; available: {', '.join(names)}"
        )


def _expanded(entry: str, endings: Collection[str]) -> Iterator[Path]:
    """Yield the file of an entry of `corpus.path`, or those of its folder or glob in alphabetical order."""
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
        yield path  # which need not exist
    else:
        raise InputError(f"corpus.path: no file or folder {path}")


def _has_text(path: Path, endings: Collection[str]) -> bool:
    """Return True for a name with one of `endings`, neither hidden nor in a hidden folder."""
    bare = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    hidden = any(part.startswith(".") for part in path.parts if part not in ("..", "."))
    return bare.suffix in endings and not hidden


def _check_names(files: Iterable[SourceFile]) -> None:
    """Raise ConfigError for two files of the same name, as of BabyLM's 10M and 100M words."""
    paths: dict[tuple[str, str | None], Path] = {}
    for file in files:
        other = paths.setdefault((file.domain, file.split) if file.split else (file.name, None), file.path)
        if other is not file.path:
            raise ConfigError(
                f"corpus.path: {other} and {file.path} must have different names; name one of them, or the folders "
                "to read, as in corpus.path=[train_10M,dev,test]"
            )


def _check_splits(files: list[SourceFile], config: FilesCorpusConfig) -> None:
    """Raise ConfigError if only some files are of a split, or none is of the train split."""
    splits = {file.split: file.path for file in files}
    if isinstance(config, BabylmCorpusConfig) and config.published_splits and set(splits) == {None}:
        raise ConfigError(f"corpus.path={config.path}: no *.train files, as of BabyLM's text data; see corpus=local")
    if set(splits) == {None}:
        return
    if None in splits:
        split = next(path for split, path in splits.items() if split)
        raise ConfigError(
            f"corpus.path: {split} is of a split and {splits[None]} of none; name the files to read, or read all as "
            "one text with corpus.published_splits=false"
        )
    if "train" not in splits:
        raise ConfigError(
            f"corpus.path={config.path}: no file of train next to {next(iter(splits.values()))}; "
            "corpus.published_splits=false divides those that there are"
        )
