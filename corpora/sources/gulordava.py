"""The corpus of Gulordava et al. 2018 as it was published: three parts and a vocabulary, from a folder or by URL."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

from corpora.config import CorpusConfig, GulordavaCorpusConfig
from corpora.documents import Document
from corpora.sources.lines import MAX_LINE, SPLITS, Report, check_present, decoded, lines
from corpora.tokenizers import EOS_TEXT, UNK_TEXT
from pairscale.errors import InputError

PARTS = ("train.txt", "valid.txt", "test.txt")
VOCABULARY = "vocab.txt"


def gulordava(config: GulordavaCorpusConfig, report: Report) -> Iterator[Document]:
    """Its documents, in their published splits. Raises InputError for files that are missing or do not come."""
    files = [Path(config.path).expanduser() / name for name in PARTS] if config.path else []
    check_present(files)
    for index, name in enumerate(PARTS):

        def tell(share: float, index: int = index) -> None:
            report((index + share) / len(PARTS))

        found = lines(files[index], tell) if files else _lines_at(f"{config.url}/{name}", config, tell)
        sentences: list[str] = []
        for _, text in found:
            # The published lines end in <eos>, which here every sentence gets anyway.
            if sentence := text.strip().removesuffix("<eos>").rstrip():
                sentences.append(sentence)
            if len(sentences) == config.document_sentences:
                yield Document(config.name, sentences, SPLITS[Path(name).stem])
                sentences = []
        if sentences:
            yield Document(config.name, sentences, SPLITS[Path(name).stem])


def published_vocabulary(config: CorpusConfig) -> list[str] | None:
    """The words, by rank, that a corpus was published with; None where it was published with none.

    Raises InputError when the file is missing or cannot be reached.
    """
    if not isinstance(config, GulordavaCorpusConfig):
        return None
    if config.path:
        file = Path(config.path).expanduser() / VOCABULARY
        check_present([file])
        found = lines(file, lambda share: None)
    else:
        found = _lines_at(f"{config.url}/{VOCABULARY}", config, lambda share: None)
    words = dict.fromkeys(text.strip() for _, text in found)
    return [word for word in words if word and word not in (EOS_TEXT, UNK_TEXT)]


def _lines_at(url: str, config: GulordavaCorpusConfig, tell: Report) -> Iterator[tuple[int, str]]:
    """Lines of a text on the web, read as it comes. Raises InputError when it does not come whole."""
    read = 0
    try:
        with urllib.request.urlopen(url, timeout=30) as stream:
            size = int(stream.headers.get("Content-Length") or 0)
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
                read += len(line)
                if number % 1024 == 0 and size:
                    tell(read / size)
                yield number, decoded(line, f"{url}:{number}")
    except OSError as error:
        asked = f"with a copy of {', '.join([*PARTS, VOCABULARY])}: corpus.path=FOLDER"
        raise InputError(f"corpus {config.name} needs {url} ({error}); {asked}") from None
    if read < size:
        raise InputError(f"{url}: only {read:,} of {size:,} bytes came; try again")
