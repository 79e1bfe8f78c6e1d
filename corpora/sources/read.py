"""The documents of a corpus as a stream, for each kind of source; no text is in memory as a whole."""

import dataclasses
import json
import re
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
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
from corpora.sources.files import SourceFile, check_domains, source_files, unpublished_splits
from corpora.sources.lines import (
    COMPRESSIONS,
    MAX_LINE,
    SPLITS,
    Report,
    check_present,
    decode_line,
    ignore,
    lines,
    report_part,
)
from corpora.text import Document, in_share, split_of
from corpora.tokenizers import EOS_TEXT, UNK_TEXT
from pairscale.console import say
from pairscale.errors import ConfigError, InputError
from pairscale.files import sha256_file, sha256_json
from pairscale.hub import import_datasets

EXPANSION = 4  # typical size of a text in sizes of its compressed file
TEXT_BYTES = 6  # per English word
HEADING = re.compile(r"= (?!=).+(?<!=) =")  # of an article in WikiText; those of sections have more signs
BABYLM_HEADING = re.compile(r"= = = .+ = = =")  # of an article or book
PARTS, VOCABULARY = ("train.txt", "valid.txt", "test.txt"), "vocab.txt"  # of Gulordava et al. 2018
# Abbreviations that often stand before a name, a number or a capital; single letters (initials) count as well.
_ABBREVIATIONS = """
    mr mrs ms dr prof rev hon st sr jr gen col maj capt lt sgt adm gov sen rep pres messrs mme mlle
    vs no nos vol vols pp fig figs ch sec art ed eds al cf ca approx dept univ inc ltd co corp bros mt ft
    jan feb mar apr jun jul aug sept sep oct nov dec e.g i.e u.s u.k
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
# A sentence ends after . ! ? (with closing quotes and brackets) if white space and a capital, digit or opening mark
# follow, but not after an abbreviation or an initial; and after 。！？ with their closing marks, whatever follows.
_END = re.compile(
    r"""(?P<western>[.!?…]+["'”’»)\]]*)\s+(?=["'“‘«(\[]*[^\W_a-z])   # before a capital, a digit or another script
      | (?P<chinese>[。！？]+["'”’」』）】]*)\s*""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[\w.]*$")


def documents(config: CorpusConfig, report: Report = ignore) -> Iterator[Document]:
    """Yield the documents of a corpus in the order of its source, and report the share of the source read so far.

    Raises InputError (file and line) for files or data sets that cannot be read, ConfigError for unknown formats.
    """
    match config:
        case ToyCorpusConfig():
            from corpora.toy import documents as toy_documents

            yield from toy_documents(config)
        case FilesCorpusConfig():
            stream = _divided(_local(config, report), config.document_sentences)
            if (share := config.share) is not None:
                stream = (document for document in stream if in_share(document, config.split, share))
            yield from _with_splits(config, stream)
        case HubCorpusConfig():
            yield from _divided(_hub(config, report), config.document_sentences)
        case GulordavaCorpusConfig():
            yield from _gulordava(config, report)
        case _:
            raise TypeError(type(config).__name__)


def describe_source(config: CorpusConfig, known: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that a corpus's text depends on, as plain data: configuration and digests of local files.

    known: digests, by name, of files that may no longer exist. Raises InputError for any other missing file.
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
        if config.version == VERSION:  # the grammars of other versions are no longer here
            description["corpus.grammar"] = sha256_json([sha256_file(file) for file in grammar])
    if isinstance(config, FilesCorpusConfig):
        digests = _digests(config, known)
        description["corpus.path"] = digests
        description["source"] = ", ".join(digests)
    return description


def _digests(config: FilesCorpusConfig, known: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of local files by name; the known ones where files, or their whole folder, no longer exist."""
    try:
        files = [file.path for file in source_files(config)]
    except InputError as error:
        if not known:
            raise
        say(f"corpus {config.name}: the text prepared from {len(known)} files is used ({error})")
        return dict(known)
    check_present(file for file in files if file.name not in known)
    return {file.name: sha256_file(file) if file.is_file() else known[file.name] for file in files}


def check_source(config: CorpusConfig) -> None:
    """Raise InputError if a local file or folder of a corpus does not exist, ConfigError for other wrong values."""
    if isinstance(config, FilesCorpusConfig):
        if not config.path:
            raise ConfigError("corpus.path: not set; give a text file, a folder, a glob, or a list of them")
        files = source_files(config)
        check_present(file.path for file in files)
        check_domains(config, {file.domain for file in files})
    elif (path := getattr(config, "path", None)) is not None and not Path(str(path)).expanduser().is_dir():
        raise InputError(f"corpus.path: no folder {path}")


def source_bytes(config: CorpusConfig) -> float:
    """Estimate the bytes of a corpus's text store; 0 if its source has no known size."""
    if isinstance(config, ToyCorpusConfig):
        return TEXT_BYTES * config.words
    if not isinstance(config, FilesCorpusConfig):
        return 0.0
    files = [file.path for file in source_files(config)]
    read = sum(file.stat().st_size * (EXPANSION if file.suffix in COMPRESSIONS else 1) for file in files)
    return read * (config.share or 1)


def _divided(stream: Iterable[Document], limit: int | None) -> Iterator[Document]:
    """Yield documents cut into parts of at most `limit` sentences."""
    for document in stream:
        sentences = document.sentences
        for start in range(0, len(sentences), limit or len(sentences) or 1):
            yield Document(document.source, sentences[start : start + limit] if limit else sentences, document.split)


# Files


def _local(config: FilesCorpusConfig, report: Report) -> Iterator[Document]:
    files = source_files(config)
    check_present(file.path for file in files)
    for index, file in enumerate(files):
        empty = True
        for sentences in filter(None, _file_documents(file, config, report_part(report, index, len(files)))):
            empty = False
            yield Document(file.domain, sentences, file.split)
        if empty:
            raise InputError(f"{file.path}: has no text")


def _with_splits(config: FilesCorpusConfig, stream: Iterable[Document]) -> Iterator[Document]:
    """Yield documents; where files of a split are missing, shares of the train split's documents are of that split."""
    missing = unpublished_splits(source_files(config))
    if missing:
        shares = " and ".join(f"{getattr(config.split, split):.1%} for {split}" for split in missing)
        say(f"corpus {config.name}: no files of {' and '.join(missing)}; documents of *.train are drawn, {shares}")
    for document in stream:
        if missing and document.split == "train":
            drawn = split_of(replace(document, split=None), config.split)
            document.split = drawn if drawn in missing else "train"
        yield document


def _file_documents(file: SourceFile, config: FilesCorpusConfig, report: Report) -> Iterator[list[str]]:
    if not isinstance(config, LocalCorpusConfig):
        from corpora.sources.conllu import conllu_documents

        return conllu_documents(file.path, report)
    match file.format:
        case ".parquet":
            return _document_rows(_parquet(file.path, config.text_field, report), config.split_sentences)
        case ".jsonl":
            return _document_rows(_jsonl(file.path, config.text_field, report), config.split_sentences)
    texts = (text for _, text in lines(file.path, report))
    if isinstance(config, BabylmCorpusConfig):  # a heading begins a document, as an empty line does
        texts = ("" if BABYLM_HEADING.fullmatch(text.strip()) else text for text in texts)
    return _paragraphs(texts, config.split_sentences, config.document_sentences)


def _paragraphs(stream: Iterable[str], running_text: bool, limit: int | None = None) -> Iterator[list[str]]:
    """Yield the sentences of each paragraph, lines up to an empty one, in parts of at most `limit`."""
    sentences: list[str] = []
    for line in stream:
        line = line.strip()
        if not line:
            yield sentences
            sentences = []
        elif running_text:
            sentences += split_sentences(line)
        else:
            sentences.append(line)
        while limit and len(sentences) > limit:
            yield sentences[:limit]
            sentences = sentences[limit:]
    yield sentences


def _no_field(where: str, text_field: str, available: Iterable[str]) -> InputError:
    return InputError(f"{where}: no field '{text_field}' (corpus.text_field); available: {', '.join(available)}")


def _checked_text(value: Any, where: str, text_field: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: field '{text_field}' is {type(value).__name__}, not text (corpus.text_field)")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where}: field '{text_field}' has half a surrogate pair") from None
    return value


def _jsonl(file: Path, text_field: str, report: Report) -> Iterator[str]:
    for number, line in lines(file, report):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}:{number}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{file}:{number}: is {type(row).__name__}, not an object with a field '{text_field}'")
        if text_field not in row:
            raise _no_field(f"{file}:{number}", text_field, row)
        yield _checked_text(row[text_field], f"{file}:{number}", text_field)


def _parquet(file: Path, text_field: str, report: Report) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        if text_field not in table.schema_arrow.names:
            raise _no_field(str(file), text_field, table.schema_arrow.names)
        rows = 0
        for batch in table.iter_batches(batch_size=1024, columns=[text_field]):
            for value in batch.column(0).to_pylist():
                rows += 1
                yield _checked_text(value, f"{file}: row {rows}", text_field)
            report(rows / max(1, table.metadata.num_rows))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a readable parquet file ({str(error).splitlines()[0]})") from None


# Published data sets


def _hub(config: HubCorpusConfig, report: Report) -> Iterator[Document]:
    parts = _load_dataset(config)
    if not config.published_splits:
        parts = {name: part for name, part in parts.items() if name == "train"} or parts
    total = sum(part.num_rows for part in parts.values())
    done = 0
    for name, part in parts.items():
        if config.text_field not in part.column_names:
            raise _no_field(config.dataset, config.text_field, part.column_names)
        split = SPLITS.get(name) if config.published_splits else None
        if config.published_splits and split is None:
            raise InputError(f"{config.dataset}: split '{name}': must be one of {', '.join(SPLITS)}")
        texts = _row_texts(part, config, done, total, report)
        for sentences in _ROWS[config.rows](texts, config.split_sentences):
            if sentences:
                yield Document(config.dataset, sentences, split)
        done += part.num_rows


def _row_texts(part: Any, config: HubCorpusConfig, done: int, total: int, report: Report) -> Iterator[str]:
    for index, row in enumerate(part.select_columns([config.text_field]), start=1):
        if index % 1024 == 0:
            report((done + index) / total)
        yield _checked_text(row[config.text_field], f"{config.dataset}: row {index}", config.text_field)


def _document_rows(texts: Iterable[str], running_text: bool) -> Iterator[list[str]]:
    for text in texts:
        yield [sentence for part in _paragraphs(text.split("\n"), running_text) for sentence in part]


def _line_rows(texts: Iterable[str], running_text: bool) -> Iterator[list[str]]:
    return _paragraphs(_lines_of(texts), running_text)


def _wikitext_rows(texts: Iterable[str], running_text: bool) -> Iterator[list[str]]:
    sentences: list[str] = []
    for line in map(str.strip, _lines_of(texts)):
        if HEADING.fullmatch(line):
            yield sentences
            sentences = []
        elif line and not line.startswith("= "):
            sentences += split_sentences(line) if running_text else [line]
    yield sentences


def _lines_of(texts: Iterable[str]) -> Iterator[str]:
    return (line for text in texts for line in text.strip("\n").split("\n"))


_ROWS: dict[str, Callable[[Iterable[str], bool], Iterator[list[str]]]] = {
    "document": _document_rows,
    "line": _line_rows,
    "wikitext": _wikitext_rows,
}


def _load_dataset(config: HubCorpusConfig) -> dict[str, Any]:
    """Return the data set's splits by name, from a local copy if one is configured."""
    name = " ".join(filter(None, [config.dataset, config.subset]))
    if config.path:
        if not Path(config.path).is_dir():  # for which the library would look on the hub
            raise InputError(f"corpus.path: no folder {config.path} (a copy of {name} written by save_to_disk)")
        import datasets

        try:
            loaded = datasets.load_from_disk(config.path)
        except (OSError, ValueError) as error:
            raise InputError(f"corpus.path={config.path}: not a data set written by save_to_disk ({error})") from None
    else:
        datasets = import_datasets()
        try:
            loaded = datasets.load_dataset(config.dataset, config.subset, revision=config.revision)
        except (OSError, ValueError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(
                f"corpus {config.name} needs {name} from the Hugging Face Hub ({reason}); on a machine with a network: "
                f"datasets.load_dataset(...).save_to_disk(FOLDER), then here corpus.path=FOLDER"
            ) from None
    return dict(loaded) if isinstance(loaded, dict) else {"train": loaded}


# Gulordava et al. 2018


def _gulordava(config: GulordavaCorpusConfig, report: Report) -> Iterator[Document]:
    """Yield the documents in their published splits. Raises InputError for missing files and failed downloads."""
    if config.path:
        check_present(Path(config.path).expanduser() / name for name in PARTS)
    for index, name in enumerate(PARTS):
        # Published lines end in <eos>, which encoding adds to every sentence.
        texts = _published_lines(config, name, report_part(report, index, len(PARTS)))
        sentences = filter(None, (text.strip().removesuffix("<eos>").rstrip() for text in texts))
        while part := list(islice(sentences, config.document_sentences)):
            yield Document(config.name, part, SPLITS[Path(name).stem])


def published_vocabulary(config: CorpusConfig) -> list[str] | None:
    """Return the words of a corpus's published vocabulary, by rank; None if it has none. Raises as `gulordava`."""
    if not isinstance(config, GulordavaCorpusConfig):
        return None
    known = dict.fromkeys(text.strip() for text in _published_lines(config, VOCABULARY))
    return [word for word in known if word and word not in (EOS_TEXT, UNK_TEXT)]


def _published_lines(config: GulordavaCorpusConfig, name: str, report: Report = ignore) -> Iterator[str]:
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


# Sentences


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, without the white space between them.

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
