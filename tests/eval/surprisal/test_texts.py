"""Texts of every form of file, and what is refused."""

import pandas as pd
import pytest

from eval.config import SurprisalConfig
from eval.surprisal.texts import read_texts
from pairscale.errors import ConfigError, InputError

DOCUMENTS = SurprisalConfig(context="document")


def written(folder, name, content):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def read_together(words):
    """Return the words that a model reads at once."""
    return words.groupby(level=0, sort=False)["word"].agg(list).tolist()


def test_a_text_file_has_a_text_a_line_and_empty_lines_between_documents(tmp_path):
    path = written(tmp_path, "a.txt", "The  cats sleep.\nThey snore.\n\n \nA dog barks.\n")
    alone, documents = read_texts(path, SurprisalConfig()), read_texts(path, DOCUMENTS)
    assert read_together(alone) == [["The", "cats", "sleep."], ["They", "snore."], ["A", "dog", "barks."]]
    assert read_together(documents) == [["The", "cats", "sleep.", "They", "snore."], ["A", "dog", "barks."]]
    for words in (alone, documents):
        assert list(words["text_id"]) == [*"11122555"]  # the line
        assert list(words["number"]) == [1, 2, 3, 1, 2, 1, 2, 3]


def test_a_table_has_a_text_a_row(tmp_path):
    path = written(tmp_path, "a.csv", 'id,story,text\nx,1,"The cats, too."\nx,1,They snore.\nz,2,Woof.\n')
    columns = {"id_column": "id", "document_column": "story"}
    words = read_texts(path, SurprisalConfig(**columns))
    assert list(words["text_id"]) == [*"xxxxxz"]
    assert read_together(words) == [["The", "cats,", "too."], ["They", "snore."], ["Woof."]]
    joined = read_texts(path, SurprisalConfig(context="document", **columns))
    assert [len(document) for document in read_together(joined)] == [5, 1]
    assert list(joined["number"]) == [1, 2, 3, 1, 2, 1]
    assert list(read_texts(path, SurprisalConfig())["text_id"]) == [*"111223"]


def test_a_table_of_words_keeps_its_columns_and_regions(tmp_path):
    lines = [
        '{"text_id": 1, "word": "The  cats", "zone": 7, "number": 0, "document": "a"}',
        '{"text_id": 1, "word": "sleep.", "zone": 8, "number": 0, "document": "a"}',
        '{"text_id": 2, "word": "Woof.", "zone": 9, "number": 0, "document": "a"}',
        '{"text_id": 2, "word": "Woof.", "zone": 9, "number": 0, "document": "b"}',
    ]
    path = written(tmp_path, "a.jsonl", "\n".join(lines))
    words = read_texts(path, SurprisalConfig())
    assert read_together(words) == [["The cats", "sleep."], ["Woof.", "Woof."]]
    expected = pd.DataFrame(
        {"text_id": [*"1122"], "number": [1, 2, 1, 2], "word": ["The cats", "sleep.", *["Woof."] * 2]}
    )
    expected = expected.assign(zone=[7, 8, 9, 9], number_given=0, document=[*"aaab"])
    pd.testing.assert_frame_equal(words.reset_index(drop=True), expected)
    documents = read_texts(path, DOCUMENTS)
    assert read_together(documents) == [["The cats", "sleep.", "Woof."], ["Woof."]]
    assert list(documents["number"]) == [1, 2, 1, 1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "\n \n", "text=.*a.txt: this file contains no text"),
        ("a.csv", "text\n", "a.csv: this table has no rows"),
        ("a.csv", "sentence\nThe cats.\n", r"a\.csv: .*no column 'text'\. Set .*: sentence"),
        ("a.csv", "text\n \n", r"a\.csv: line 2: text is ''"),
        ("a.csv", "word\nThe\n", r"a\.csv: .*no column 'text_id'\. Set .*: word"),
        ("a.jsonl", '{"text": 5}', r"a\.jsonl: line 1: text is 5"),
        ("a.csv", "text_id,word,unk,unk_given\n1,The,a,b\n", r"a\.csv: column unk would .* unk_given"),
        ("a.doc", "x", r"text=.*a\.doc: .* \.csv"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, content, message):
    with pytest.raises((ConfigError, InputError), match=message):
        read_texts(written(tmp_path, name, content), SurprisalConfig())


def test_missing_files_and_columns_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.txt: this file doesn't exist"):
        read_texts(tmp_path / "none.txt", SurprisalConfig())
    with pytest.raises(InputError, match="no column 'document'"):
        read_texts(written(tmp_path, "a.csv", "text\nThe cats.\n"), DOCUMENTS)
    with pytest.raises(ConfigError, match=r"surprisal"):
        SurprisalConfig(text_column="word")
