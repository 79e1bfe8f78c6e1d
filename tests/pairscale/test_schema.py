"""Checks of JSON and YAML files: wrong ones are a message of one line with the file and the place."""

import json
import math
from typing import NotRequired, TypedDict

import msgspec
import pytest
import yaml

from pairscale.errors import RunError
from pairscale.schema import Digest, Finite, FolderName, Positive, load_yaml, parse_json, read_json, read_yaml


class Part(TypedDict):
    words: Positive
    loss: NotRequired[Finite]


class Whole(TypedDict):
    version: int
    part: Part
    digest: NotRequired[Digest]
    name: NotRequired[FolderName]


class Struct(msgspec.Struct):
    words: Positive
    seed: int = 1


def parse(text):
    return parse_json(text, Whole, "FILE", RunError, "remove it", version=1)


def test_valid_json_is_returned_unchanged():
    text = '{"version": 1, "part": {"words": 3, "newer": [1]}, "name": "Wikipedia 中文+ \\ud83d\\ude00"}'
    assert parse(text) == json.loads(text)
    assert parse_json('{"words": 2, "newer": 1}', Struct, "FILE", RunError, "") == Struct(2)


WRONG = {
    "": "as JSON",
    "[]": "$: expected object, got array",
    "[" * 100_000: "as JSON (it is nested too deeply)",
    '{"version": 2, "part": 1}': "version 2, but pairscale reads version 1",
    '{"version": 1}': "part",
    '{"version": 1, "part": {"words": "3"}}': "$.part.words: expected int, got str",
    '{"version": 1, "part": {"words": true}}': "$.part.words: expected int, got bool",
    '{"version": 1, "part": {"words": 3.0}}': "$.part.words: expected int, got float",
    '{"version": 1, "part": {"words": -3}}': "$.part.words: expected int >= 1, got -3",
    '{"version": 1, "part": {"words": ' + "9" * 100 + "}}": "$.part.words: expected int <= 9223372036854775807",
    '{"version": ' + "9" * 5000 + "}": "as JSON (Exceeds the limit",
    '{"version": 1, "part": {"words": 1, "loss": NaN}}': "$.part.loss: expected a finite number, got nan",
    '{"version": 1, "part": {"words": 1}, "digest": "ab"}': "$.digest: expected 64 hexadecimal digits, got 'ab'",
    '{"version": 1, "part": {"words": 1}, "name": "\\ud800"}': "as JSON (half a character",
    **{
        json.dumps({"version": 1, "part": {"words": 1}, "name": name}): "$.name: expected the name of a folder"
        for name in ("..", "a/b", "a\\b", "a\nb", "", "x" * 300)
    },
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:60])
def test_invalid_json_is_a_message_of_one_line(text):
    with pytest.raises(RunError) as caught:
        parse(text)
    assert str(caught.value).startswith("FILE: ")
    assert WRONG[text] in str(caught.value)
    assert str(caught.value).endswith(". Remove it.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "[" * 1000,
        "a: &a [1]\nb: [*a, *a]",
        "a: !!python/name:os.system",
        "a: 2001-99-99",
        "a: " + "9" * 5000,
        "a: !!set {b, c}",
    ],
    ids=lambda text: text[:20],
)
def test_yaml_that_is_invalid_runs_code_or_never_ends_is_refused(text, tmp_path):
    with pytest.raises((yaml.YAMLError, ValueError)):
        load_yaml(text)
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"config.yaml: .* as YAML \(.*\)\. Remove it\.$"):
        read_yaml(tmp_path / "config.yaml", Whole, RunError, "remove it")


def test_plain_yaml_is_read_as_by_safe_load():
    text = "a: {b: [1, 2.5, yes, null, '3', 1e3], c: !!str 4}\nd: |\n  text\n  over lines\n"
    assert load_yaml(text) == yaml.safe_load(text)
    assert math.isinf(load_yaml(".inf"))


def test_files_that_cannot_be_read_are_messages_of_one_line(tmp_path):
    with pytest.raises(RunError, match=r"x.json: .*\. Remove it\."):
        read_json(tmp_path / "x.json", Whole, RunError, "remove it")
    with pytest.raises(RunError, match=r"cannot be read \(Is a directory\)\. Remove it\."):
        read_json(tmp_path, Whole, RunError, "remove it")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match=r"binary: .* as JSON \('utf-8' codec"):
        read_json(tmp_path / "binary", Whole, RunError, "remove it")
