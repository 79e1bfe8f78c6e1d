"""The version of the toy language, by which runs on different texts stay apart."""

import hashlib
import json

import pytest

from corpora.config import ToyCorpusConfig
from corpora.toy import VERSION, documents
from eval.benchmarks.toy import pairs
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from train.runs.identity import run_id


def test_only_the_present_version_is_written_and_its_runs_have_their_own_ids() -> None:
    overrides = ["corpus=toy", "model=lstm_tiny", "sample.size=2k"]
    present, earlier = (compose("train", [*overrides, *more]) for more in ([], ["corpus.version=1"]))
    assert present.corpus.version == VERSION
    assert run_id(present) != run_id(earlier)
    values = dict(vars(earlier.corpus))
    del values["version"]  # as in the configuration of a run from before there were versions
    assert ToyCorpusConfig(**values) == earlier.corpus
    message = rf"corpus.version=1: the toy language is written in version {VERSION} only"
    with pytest.raises(ConfigError, match=message):
        next(documents(earlier.corpus))


def test_a_language_that_changes_has_a_new_version() -> None:
    """With other digests, VERSION and conf/corpus/toy.yaml must say one more, so that runs do not mix."""
    config = compose("corpora", ["corpus=toy", "corpus.words=50000"]).corpus
    sentences = [sentence for document in documents(config) for sentence in document.sentences]
    written = json.dumps(sentences), json.dumps(list(pairs(5, 50)))
    assert (VERSION, *(hashlib.sha256(text.encode()).hexdigest()[:16] for text in written)) == (
        2,
        "93045ea582f54432",
        "9c5e16c3bf3a64b1",
    )
