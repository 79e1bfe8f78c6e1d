"""The sentences of a train split that match a regular expression, searched once per corpus and expression.

    store/<corpus>/regex-<digest>/
        sentences.npy       sentences of the train split that match, ascending
        manifest.json       written last: expression, digests

Expressions are those of the `regex` package, a superset of Python's `re` with a time limit.
"""

from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import regex

from corpora.ablation.config import RegexFilter
from corpora.text import TextStore, check_recorded, file_digest, read_manifest, written_once
from pairscale.errors import ConfigError
from pairscale.files import sha256_json, write_array, write_json
from pairscale.progress import with_progress
from pairscale.schema import Digest

VERSION = 1
LINE_SECONDS = 1.0  # time limit of an expression for one sentence
BATCH = 1_000


class RegexManifest(TypedDict):
    """Schema of manifest.json."""

    regex: str
    text: Digest
    digest: Digest


class RegexMatches:
    """The sentences of a train split that match an expression, ascending, and a digest of them."""

    def __init__(self, folder: Path, text: TextStore, expression: str):
        """Open matches. Raises StoreError if they are damaged or belong to another text or expression."""
        path = folder / "sentences.npy"
        manifest = read_manifest(folder, VERSION, RegexManifest)
        recorded = {"text": text.digest, "regex": expression, "digest": file_digest(path)}
        check_recorded(folder, manifest, recorded)
        self.digest: str = manifest["digest"]
        self.sentences: npt.NDArray[np.int64] = np.load(path)


def regex_folder(corpus: Path, expression: str) -> Path:
    """Return store/<corpus>/regex-<digest of the expression>; `corpus` is the folder store/<corpus>."""
    return corpus / f"regex-{sha256_json(expression)[:16]}"


def regex_matches(text: TextStore, config: RegexFilter) -> RegexMatches:
    """Return the matches of a filter in the train split, searched if they are missing.

    Raises ConfigError if the search takes over LINE_SECONDS for a sentence, StoreError for damaged text or matches.
    """
    folder = regex_folder(text.folder.parent, config.regex)
    with written_once(folder) as missing:
        if missing:
            _write(folder, text, config)
    return RegexMatches(folder, text, config.regex)


def _write(folder: Path, text: TextStore, config: RegexFilter) -> None:
    text.verify()
    search = regex.compile(config.regex).search
    train = text.split_sentences("train")
    matches = []
    parts = np.array_split(train, max(1, len(train) // BATCH))
    counted = ((len(part), part) for part in parts)
    for part in with_progress(counted, f"searching {config.name}", len(train), "sentences"):
        for index, sentence in zip(part.tolist(), text.sentences(part), strict=True):
            try:
                if search(sentence, timeout=LINE_SECONDS) is not None:
                    matches.append(index)
            except TimeoutError:
                raise ConfigError(
                    f"filter.regex={config.regex}: takes more than {LINE_SECONDS:.0f} s for one sentence of "
                    f"{len(sentence):,} characters ({text.folder / 'text.txt'}:{index + 1}); avoid nested "
                    "repetitions such as (a+)+"
                ) from None
    path = folder / "sentences.npy"
    write_array(path, np.array(matches, np.int64))
    manifest = {"version": VERSION, "regex": config.regex, "text": text.digest, "digest": file_digest(path)}
    write_json(folder / "manifest.json", manifest | {"package": regex.__version__})
