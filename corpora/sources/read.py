"""Stream the documents of a corpus from each kind of source, without loading the whole text into memory."""

import dataclasses
import json
import re
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from corpora.config import (
    BabylmCorpusConfig,
    CorpusConfig,
    FilesCorpusConfig,
    GulordavaCorpusConfig,
    HubCorpusConfig,
    LocalCorpusConfig,
    ToyCorpusConfig,
)
from corpora.sources.files import SourceFile, check_domains, source_files
from corpora.sources.lines import COMPRESSIONS, MAX_LINE, SPLITS, check_present, decode_line, lines
from corpora.text import Document, in_share, split_of
from corpora.tokenizers import EOS_TEXT, UNK_TEXT
from pairscale.console import say
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json
from pairscale.hub import import_datasets

EXPANSION = 4  # a text is typically this many times as large as its compressed file
TEXT_BYTES = 6  # size of a text store per English word, in bytes
HEADING = re.compile(r"= (?!=).+(?<!=) =")  # heading of an article in WikiText (section headings have more "=")
BABYLM_HEADING = re.compile(r"= = = .+ = = =")  # heading of an article or book
PARTS, VOCABULARY = ("train.txt", "valid.txt", "test.txt"), "vocab.txt"  # the files of Gulordava et al. 2018
# Abbreviations that are often followed by a name, a number or a capital. Single letters (initials) are treated alike.
_ABBREVIATIONS = """
    mr mrs ms dr prof rev hon st sr jr gen col maj capt lt sgt adm gov sen rep pres messrs mme mlle
    vs no nos vol vols pp fig figs ch sec art ed eds al cf ca approx dept univ inc ltd co corp bros mt ft
    jan feb mar apr jun jul aug sept sep oct nov dec e.g i.e u.s u.k
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
# A sentence ends after . ! ? (with closing quotes and brackets) if white space and a capital, digit or opening mark
# follow, but not after an abbreviation or an initial. It also ends after 。！？ with their closing marks.
_END = re.compile(
    r"""(?P<western>[.!?…]+["'”’»)\]]*)\s+(?=["'“‘«(\[]*[^\W_a-z])   # before a capital, a digit or another script
      | (?P<chinese>[。！？]+["'”’」』）】]*)\s*""",
    re.VERBOSE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LAST_WORD = re.compile(r"[\w.]*$")


def documents(config: CorpusConfig) -> Iterator[Document]:
    """Yield the documents of a corpus in the order of its source.

    Raises InputError, with file and line, if a file or data set can't be read. Raises ConfigError for unknown formats.
    """
    match config:
        case ToyCorpusConfig():
            from corpora.toy import documents as toy_documents

            yield from toy_documents(config)
        case FilesCorpusConfig():
            stream = _local(config)
            if (share := config.share) is not None:
                stream = (document for document in stream if in_share(document, config.split, share))
            yield from _with_splits(config, stream)
        case HubCorpusConfig():
            yield from _hub(config)
        case GulordavaCorpusConfig():
            yield from _gulordava(config)
        case _:
            raise TypeError(type(config).__name__)


def describe_source(config: CorpusConfig, known: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that the text of a corpus depends on, as plain data.

    This is its configuration and the digests of its local files. `known` maps the names of the files that the text was
    prepared from to their digests, because they may no longer exist. Raises InputError if another file is missing.
    """
    description = {
        f"corpus.{field.name}": getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.metadata.get("digest", True) and field.metadata.get("text", True)
    }
    description["corpus.split"] = dataclasses.asdict(config.split)
    description["source"] = config.name
    if isinstance(config, ToyCorpusConfig):
        from corpora.toy import FOLDER, VERSION

        grammar = [FOLDER / "grammar.yaml", *sorted((FOLDER / "lexicon").glob("*.tsv"))]
        if config.version == VERSION:  # there are no grammars of other versions
            description["corpus.grammar"] = sha256_json([sha256_file(file) for file in grammar])
    if isinstance(config, FilesCorpusConfig):
        digests = _digests(config, known)
        description["corpus.path"] = digests
        description["source"] = ", ".join(digests)
    return description


def _digests(config: FilesCorpusConfig, known: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of local files by name. Use the known digests for files or folders that no longer exist."""
    try:
        files = [file.path for file in source_files(config)]
    except InputError as error:
        if not known:
            raise
        say(f"corpus {config.name}: using the text that was prepared from {len(known)} files. {error}")
        return dict(known)
    check_present(file for file in files if file.name not in known)
    return {file.name: sha256_file(file) if file.is_file() else known[file.name] for file in files}


def check_source(config: CorpusConfig) -> None:
    """Raise InputError if a corpus's local file or folder does not exist, and ConfigError for other invalid values."""
    if isinstance(config, FilesCorpusConfig):
        if not config.path:
            raise ConfigError("No text is chosen. Add corpus.path=FILE (or a folder, a glob, or a list of them).")
        files = source_files(config)
        check_present(file.path for file in files)
        check_domains(config, {file.domain for file in files})
    elif (path := getattr(config, "path", None)) is not None and not Path(str(path)).expanduser().is_dir():
        raise InputError(f"corpus.path={path}: this folder does not exist. Correct the path.")


def source_bytes(config: CorpusConfig) -> float:
    """Estimate the size of a corpus's text store in bytes. Return 0 if the size of its source is unknown."""
    if isinstance(config, ToyCorpusConfig):
        return TEXT_BYTES * config.words
    if not isinstance(config, FilesCorpusConfig):
        return 0.0
    files = [file.path for file in source_files(config)]
    packed = (*COMPRESSIONS, ".parquet")
    read = sum(file.stat().st_size * (EXPANSION if file.suffix in packed else 1) for file in files if file.is_file())
    return read * (config.share or 1)


def _documents(sentences: Iterable[str], limit: int | None) -> Iterator[list[str]]:
    """Yield each document as a list of at most `limit` sentences. An empty sentence ends a document."""
    document: list[str] = []
    for sentence in sentences:
        if document and (not sentence or len(document) == limit):
            yield document
            document = []
        if sentence:
            document.append(sentence)
    if document:
        yield document


def _sentences(texts: Iterable[str], running_text: bool) -> Iterator[str]:
    """Yield the sentences of each line, or the line itself if it isn't running text. Yield "" for an empty line."""
    for line in map(str.strip, texts):
        if running_text and line:
            yield from split_sentences(line)
        else:
            yield line


# Files


def _local(config: FilesCorpusConfig) -> Iterator[Document]:
    files = source_files(config)
    check_present(file.path for file in files)
    for file in files:
        empty = True
        for sentences in _documents(_file_sentences(file, config), config.document_sentences):
            empty = False
            yield Document(file.domain, sentences, file.split)
        if empty:
            raise InputError(f"{file.path}: this file contains no text. Remove it from corpus.path.")


def _with_splits(config: FilesCorpusConfig, stream: Iterable[Document]) -> Iterator[Document]:
    """Yield documents. If there are no files for a split, move documents from the train split to it."""
    splits = {file.split for file in source_files(config)}
    missing = [] if splits == {None} else [split for split in ("valid", "test") if split not in splits]
    if missing:
        shares = " and ".join(f"{getattr(config.split, split):.1%} for {split}" for split in missing)
        say(
            f"corpus {config.name}: there are no files for {' and '.join(missing)}. Instead, documents from *.train "
            f"are used ({shares})."
        )
    for document in stream:
        if missing and document.split == "train":
            drawn = split_of(replace(document, split=None), config.split)
            document.split = drawn if drawn in missing else "train"
        yield document


def _file_sentences(file: SourceFile, config: FilesCorpusConfig) -> Iterator[str]:
    """Yield the sentences of a file, and "" between its documents."""
    if not isinstance(config, LocalCorpusConfig):
        from corpora.sources.conllu import conllu_sentences  # needs an optional package

        for sentence in conllu_sentences(file.path):
            yield from ([""] if sentence.begins_document else [])
            yield sentence.text
        return
    if file.format in _ROWS:
        texts = _document_rows(_texts(_ROWS[file.format](file.path, config.text_field), config.text_field))
    else:
        texts = (text for _, text in lines(file.path))
    if isinstance(config, BabylmCorpusConfig):  # a heading begins a document, like an empty line
        texts = ("" if BABYLM_HEADING.fullmatch(text.strip()) else text for text in texts)
    yield from _sentences(texts, config.split_sentences)


def _texts(rows: Iterable[tuple[str, Any]], text_field: str) -> Iterator[str]:
    """Yield the texts of rows. Each row comes with its place in the file. Raises InputError if a row has no text."""
    for where, row in rows:
        if not isinstance(row, dict):
            raise InputError(
                f"{where}: this line contains a value of type {type(row).__name__}. It must contain an object with a "
                f"field '{text_field}'."
            )
        if text_field not in row:
            raise InputError(f"{where}: there is no field '{text_field}'. Set corpus.text_field to {' or '.join(row)}.")
        value = row[text_field]
        if not isinstance(value, str):
            raise InputError(
                f"{where}: the field '{text_field}' contains a value of type {type(value).__name__}, not text. Set "
                "corpus.text_field to another field."
            )
        if _SURROGATE.search(value):
            raise InputError(
                f"{where}: the field '{text_field}' contains half a surrogate pair, which is not valid text. Remove it."
            )
        yield value


def _jsonl(file: Path, text_field: str) -> Iterator[tuple[str, Any]]:
    for number, line in lines(file):
        if line.strip():
            try:
                yield f"{file}:{number}", json.loads(line)
            except ValueError as error:
                raise InputError(f"{file}:{number}: this line is not valid JSON ({error}). Correct it.") from None


def _parquet(file: Path, text_field: str) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        columns = [text_field] if text_field in table.schema_arrow.names else None  # all columns, for the error message
        batches = table.iter_batches(batch_size=1024, columns=columns)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        yield from ((f"{file}: row {number}", row) for number, row in enumerate(rows, start=1))
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{file}: this is not a readable Parquet file ({str(error).splitlines()[0]}). Replace it."
        ) from None


_ROWS = {".jsonl": _jsonl, ".parquet": _parquet}  # functions that yield the rows of a file with their places in it


# Published data sets


def _hub(config: HubCorpusConfig) -> Iterator[Document]:
    parts = _load_dataset(config)
    if not config.published_splits:
        parts = {name: part for name, part in parts.items() if name == "train"} or parts
    for name, part in parts.items():
        split = SPLITS.get(name) if config.published_splits else None
        if config.published_splits and split is None:
            raise InputError(
                f"{config.dataset}: the split '{name}' is unknown. Splits must be named {', '.join(SPLITS)}. Use "
                "corpus.published_splits=false to read only 'train' and split it again."
            )
        columns = [config.text_field] if config.text_field in part.column_names else part.column_names
        rows = enumerate(part.select_columns(columns), start=1)
        texts = _texts(((f"{config.dataset}: row {number}", row) for number, row in rows), config.text_field)
        sentences = _sentences(_LINES[config.rows](texts), config.split_sentences)
        for document in _documents(sentences, config.document_sentences):
            yield Document(config.dataset, document, split)


def _document_rows(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of texts, and "" after each text, which is a document."""
    for text in texts:
        yield from filter(str.strip, text.split("\n"))
        yield ""


def _line_rows(texts: Iterable[str]) -> Iterator[str]:
    return (line for text in texts for line in text.strip("\n").split("\n"))


def _wikitext_rows(texts: Iterable[str]) -> Iterator[str]:
    for line in map(str.strip, _line_rows(texts)):
        if HEADING.fullmatch(line):
            yield ""
        elif line and not line.startswith("= "):
            yield line


_LINES = {"document": _document_rows, "line": _line_rows, "wikitext": _wikitext_rows}


def _load_dataset(config: HubCorpusConfig) -> dict[str, Any]:
    """Return the data set's splits by name, from a local copy if one is configured."""
    name = " ".join(filter(None, [config.dataset, config.subset]))
    if config.path:
        if not Path(config.path).is_dir():  # the library would look for it on the hub
            raise InputError(
                f"corpus.path={config.path}: this folder does not exist. Use a copy of {name} written by save_to_disk."
            )
        import datasets

        try:
            loaded = datasets.load_from_disk(config.path)
        except (OSError, ValueError) as error:
            raise InputError(
                f"corpus.path={config.path}: this is not a data set written by save_to_disk ({error}). Correct the "
                "path."
            ) from None
    else:
        datasets = import_datasets()
        try:
            loaded = datasets.load_dataset(config.dataset, config.subset, revision=config.revision)
        except (OSError, ValueError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(
                f"corpus {config.name}: can't load {name} from the Hugging Face Hub ({reason}). On a machine with "
                "network access, run datasets.load_dataset(...).save_to_disk(FOLDER). Then add corpus.path=FOLDER here."
            ) from None
    return dict(loaded) if isinstance(loaded, dict) else {"train": loaded}


# Gulordava et al. 2018


def _gulordava(config: GulordavaCorpusConfig) -> Iterator[Document]:
    """Yield the documents with their published splits. Raises InputError for missing files and failed downloads."""
    if config.path:
        check_present(Path(config.path).expanduser() / name for name in PARTS)
    for name in PARTS:
        # Published lines end in <eos>, which encoding adds to every sentence.
        texts = _published_lines(config, name)
        sentences = filter(None, (text.strip().removesuffix("<eos>").rstrip() for text in texts))
        for document in _documents(sentences, config.document_sentences):
            yield Document(config.name, document, SPLITS[Path(name).stem])


def published_vocabulary(config: CorpusConfig) -> list[str] | None:
    """Return the words of a corpus's published vocabulary by rank, or None if it has no such vocabulary.

    Raises InputError if the file is missing or cannot be downloaded.
    """
    if not isinstance(config, GulordavaCorpusConfig):
        return None
    known = dict.fromkeys(text.strip() for text in _published_lines(config, VOCABULARY))
    return [word for word in known if word and word not in (EOS_TEXT, UNK_TEXT)]


def _published_lines(config: GulordavaCorpusConfig, name: str) -> Iterator[str]:
    """Yield the lines of a published file, from the configured folder or else from the web."""
    if config.path:
        file = Path(config.path).expanduser() / name
        check_present([file])
        yield from (text for _, text in lines(file))
    else:
        yield from _download(f"{config.url}/{name}", config.name)


def _download(url: str, corpus: str) -> Iterator[str]:
    """Download a text, and yield its lines as they arrive. Raises InputError if the download fails or is incomplete."""
    read = 0
    try:
        with urllib.request.urlopen(url, timeout=30) as stream:
            size = int(stream.headers.get("Content-Length") or 0)
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
                read += len(line)
                yield decode_line(line, f"{url}:{number}")
    except OSError as error:
        files = ", ".join([*PARTS, VOCABULARY])
        raise InputError(
            f"corpus {corpus}: can't download {url} ({error}). Without network access, set corpus.path to a folder "
            f"with {files}."
        ) from None
    if read < size:
        raise InputError(f"{url}: only {read:,} of {size:,} bytes were received. Run the command again.")


# Sentences


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences, without the white space between them.

    >>> split_sentences("Dr. Smith left. He was late.")
    ['Dr. Smith left.', 'He was late.']
    """
    sentences = []
    start = 0
    for match in _END.finditer(text):
        if match["western"] == "." and _abbreviated(text[start : match.start()]):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _abbreviated(before: str) -> bool:
    match = _LAST_WORD.search(before)
    assert match
    word = match[0].lower()
    return word in ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i")
