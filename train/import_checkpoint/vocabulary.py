"""The vocabulary of a checkpoint in our order: `<eos>` is id 0, `<unk>` is id 1."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from corpora.config import TokenizerConfig
from corpora.tokenizers import ListTokenizer
from pairscale.errors import InputError
from train.import_checkpoint.pickles import Record, is_pickled, one_line_errors, read_torch_file
from train.models.config import ImportedConfig


@dataclass(frozen=True)
class Vocabulary:
    """`words` by the checkpoint's ids; our id i is the checkpoint's id order[i]."""

    path: Path
    words: list[str]
    order: list[int]

    def order_of(self, rows: int, checkpoint: str) -> list[int]:
        """Return `order`. Raises InputError unless the checkpoint has a row for each word."""
        if rows != len(self.words):
            raise InputError(
                f"{self.path}: {len(self.words):,} words, but {checkpoint} has rows for {rows:,}: not its vocabulary"
            )
        return self.order

    def tokenizer(self, kind: Literal["whitespace", "word", "char", "jieba"]) -> ListTokenizer:
        """Return a tokenizer of these words."""
        schema = TokenizerConfig(
            name=kind, kind=kind, vocab_size=None, fit_on="train", fit_sentences=1, character_coverage=1.0
        )
        return ListTokenizer(schema, [self.words[index] for index in self.order[2:]])


def read_vocabulary(config: ImportedConfig, one_a_line: bool) -> Vocabulary:
    """Read the vocabulary of `config`: a text, or the pickled Vocab of the Transformer-XL code (cache.pt).

    A text has words between white space (colorlessgreenRNNs), or with `one_a_line` (Transformer-XL) at the beginnings
    of lines. Raises InputError for a file that is missing, damaged or without `config.eos` or `config.unk`.
    """
    beside = Path(config.checkpoint).expanduser().with_name("vocab.txt")
    path = Path(config.vocabulary).expanduser() if config.vocabulary else beside
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the checkpoint's vocabulary by model.vocabulary=FILE")
    with one_line_errors(path):
        words = _pickled_words(path) if is_pickled(path) else _text_words(path, one_a_line)
    ids = {word: index for index, word in enumerate(words)}  # the last of equal ones, as the authors do
    for key, special in (("eos", config.eos), ("unk", config.unk)):
        if special not in ids:
            raise InputError(f"{path}: has no {special}; give its word for it by model.{key}=WORD")
    first = [ids[config.eos], ids[config.unk]]
    if first[0] == first[1]:
        raise InputError(f"{path}: {config.eos} cannot be both model.eos and model.unk")
    return Vocabulary(path, words, [*first, *(index for index in range(len(words)) if index not in first)])


def _text_words(path: Path, one_a_line: bool) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error})") from None
    if not one_a_line:
        return text.split()
    return list(dict.fromkeys(line.split()[0] for line in text.split("\n") if line.strip()))


def _pickled_words(path: Path) -> list[str]:
    """Return the words of a pickled Vocab, or of the Corpus that holds one (cache.pt)."""
    root = read_torch_file(path)
    if isinstance(root, Record) and root.name == "data_utils.Corpus":
        root = root.state["vocab"]
    if not (isinstance(root, Record) and root.name.endswith("vocabulary.Vocab")):
        raise InputError(f"{path}: holds no Vocab of the Transformer-XL code with its words")
    if root.state["lower_case"]:
        raise InputError(f"{path}: of text in lower case, which benchmarks are not in; it cannot be scored here")
    words = root.state["idx2sym"]
    if not all(isinstance(word, str) and word.split() == [word] for word in words):
        raise InputError(f"{path}: its Vocab has words that are none, or contain white space")
    return list(words)
