"""A treebank of Universal Dependencies: three files of CoNLL-U, as releases name them."""

from dataclasses import dataclass
from pathlib import Path

from corpora.annotate.parsers.conllu import tree_of
from corpora.annotate.tree import Tree
from corpora.sources.conllu import conllu_sentences
from corpora.sources.lines import lines
from pairscale.errors import InputError
from pairscale.files import sha256_file

SPLITS = ("train", "dev", "test")
ENDINGS = ("", ".gz", ".xz", ".bz2", ".zst")


@dataclass(frozen=True)
class Treebank:
    """The files of a treebank by split."""

    files: dict[str, Path]

    @classmethod
    def of(cls, paths: list[str]) -> "Treebank":
        """Return the treebank in a folder, or of files by name. Raises InputError unless there is one of each split."""
        given = [Path(path).expanduser() for path in paths]
        if missing := [str(path) for path in given if not path.exists()]:
            raise InputError(f"treebank: no file or folder {missing[0]}")
        files = [file for path in given for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
        of_split = {
            split: [file for file in files if file.name.endswith(tuple(f"-{split}.conllu{end}" for end in ENDINGS))]
            for split in SPLITS
        }
        for split, found in of_split.items():
            if len(found) != 1:
                names = ", ".join(file.name for file in found) or "no such file"
                raise InputError(f"treebank={','.join(paths)}: needs one *-{split}.conllu, has {names}")
        return cls({split: found[0] for split, found in of_split.items()})

    @property
    def name(self) -> str:
        """How the name of the training file begins, "en_ewt-ud"."""
        return self.files["train"].name.partition("-train.conllu")[0]

    @property
    def language(self) -> str:
        """The code of the language in the name, "en" of "en_ewt-ud"; "" if it has none."""
        code, underscore, _ = self.name.partition("_")
        return code if underscore else ""

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file."""
        return {split: sha256_file(file) for split, file in self.files.items()}

    def trees(self, split: str) -> list[Tree]:
        """Return the trees of a split. Raises InputError, which names file and line, for broken CoNLL-U."""
        trees = [tree_of(sentence, sentence.text) for sentence in conllu_sentences(self.files[split])]
        if not trees:
            raise InputError(f"{self.files[split]}: has no sentence")
        return trees

    def text(self, split: str) -> str:
        """Return a file's text."""
        return "\n".join(line for _, line in lines(self.files[split])) + "\n"
