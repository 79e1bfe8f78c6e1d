"""The published corpus of Gulordava et al. 2018: three parts and a vocabulary, from a folder or by URL."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

from corpora.config import CorpusConfig, GulordavaCorpusConfig
from corpora.sources.lines import MAX_LINE, SPLITS, Report, check_present, decode_line, ignore, lines, report_part
from corpora.text import Document
from corpora.tokenizers import EOS_TEXT, UNK_TEXT
from pairscale.errors import InputError

PARTS = ("train.txt", "valid.txt", "test.txt")
VOCABULARY = "vocab.txt"


def gulordava(config: GulordavaCorpusConfig, report: Report) -> Iterator[Document]:
    """Yield the documents in their published splits. Raises InputError for missing files and failed downloads."""
    if config.path:
        check_present(Path(config.path).expanduser() / name for name in PARTS)
    for index, name in enumerate(PARTS):
        sentences: list[str] = []
        for text in _lines(config, name, report_part(report, index, len(PARTS))):
            # Published lines end in <eos>, which encoding adds to every sentence.
            if sentence := text.strip().removesuffix("<eos>").rstrip():
                sentences.append(sentence)
            if len(sentences) == config.document_sentences:
                yield Document(config.name, sentences, SPLITS[Path(name).stem])
                sentences = []
        if sentences:
            yield Document(config.name, sentences, SPLITS[Path(name).stem])


def published_vocabulary(config: CorpusConfig) -> list[str] | None:
    """Return the words of a corpus's published vocabulary, by rank; None if it has none. Raises as `gulordava`."""
    if not isinstance(config, GulordavaCorpusConfig):
        return None
    words = dict.fromkeys(text.strip() for text in _lines(config, VOCABULARY))
    return [word for word in words if word and word not in (EOS_TEXT, UNK_TEXT)]


def _lines(config: GulordavaCorpusConfig, name: str, report: Report = ignore) -> Iterator[str]:
    """Yield the lines of a published file, from the folder if one is configured, else from the web."""
    if config.path:
        file = Path(config.path).expanduser() / name
        check_present([file])
        yield from (text for _, text in lines(file, report))
    else:
        yield from _download(f"{config.url}/{name}", config.name, report)


def _download(url: str, corpus: str, report: Report) -> Iterator[str]:
    """Yield the lines of a text on the web as they arrive. Raises InputError if the download fails or ends early."""
    read = 0
    try:
        with urllib.request.urlopen(url, timeout=30) as stream:
            size = int(stream.headers.get("Content-Length") or 0)
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
                read += len(line)
                if number % 1024 == 0 and size:
                    report(read / size)
                yield decode_line(line, f"{url}:{number}")
    except OSError as error:
        files = ", ".join([*PARTS, VOCABULARY])
        raise InputError(
            f"corpus {corpus} needs {url} ({error}); without a network, give a folder with {files}: corpus.path=FOLDER"
        ) from None
    if read < size:
        raise InputError(f"{url}: only {read:,} of {size:,} bytes were received; try again")
