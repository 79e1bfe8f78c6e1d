"""Texts of every form of file, and what is refused."""

import pandas as pd
import pytest

from eval.surprisal.config import SurprisalConfig
from eval.surprisal.texts import read_texts
from pairscale.errors import ConfigError, InputError

DOCUMENTS = SurprisalConfig(context="document")


def written(folder, name, content):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def test_a_text_file_has_a_text_a_line_and_empty_lines_between_documents(tmp_path):
    path = written(tmp_path, "a.txt", "The  cats sleep.\nThey snore.\n\n \nA dog barks.\n")
    alone = read_texts(path, SurprisalConfig())
    assert [text.words for text in alone] == [["The", "cats", "sleep."], ["They", "snore."], ["A", "dog", "barks."]]
    first, second = read_texts(path, DOCUMENTS)
    assert first.words == ["The", "cats", "sleep.", "They", "snore."]
    assert second.words == ["A", "dog", "barks."]
    assert list(first.table["text_id"]) == ["1", "1", "1", "2", "2"]
    assert list(first.table["number"]) == [1, 2, 3, 1, 2]
    assert list(second.table["text_id"]) == ["5"] * 3  # the line


def test_a_table_has_a_text_a_row(tmp_path):
    path = written(tmp_path, "a.csv", 'id,story,text\nx,1,"The cats, too."\ny,1,They snore.\nz,2,Woof.\n')
    columns = {"id_column": "id", "document_column": "story"}
    texts = read_texts(path, SurprisalConfig(**columns))
    assert [text.places[0][0] for text in texts] == ["x", "y", "z"]
    assert texts[0].words == ["The", "cats,", "too."]
    joined = read_texts(path, SurprisalConfig(context="document", **columns))
    assert [len(text.words) for text in joined] == [5, 1]
    assert [text.places[0] for text in read_texts(path, SurprisalConfig())] == [("1", 1), ("2", 1), ("3", 1)]


def test_a_table_of_words_keeps_its_columns_and_regions(tmp_path):
    lines = [
        '{"text_id": 1, "word": "The cats", "zone": 7, "number": 0}',
        '{"text_id": 1, "word": "sleep.", "zone": 8, "number": 0}',
        '{"text_id": 2, "word": "Woof.", "zone": 9, "number": 0}',
    ]
    first, second = read_texts(written(tmp_path, "a.jsonl", "\n".join(lines)), SurprisalConfig())
    assert first.words == ["The cats", "sleep."]
    expected = pd.DataFrame({"text_id": ["1", "1"], "number": [1, 2], "word": ["The cats", "sleep."], "zone": [7, 8]})
    pd.testing.assert_frame_equal(first.table, expected.assign(number_given=[0, 0]))
    assert list(second.table["zone"]) == [9]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "\n \n", "text=.*a.txt: holds no text"),
        ("a.csv", "text\n", "a.csv: holds no rows"),
        ("a.csv", "sentence\nThe cats.\n", r"a\.csv: line 2: no column text; there are sentence"),
        ("a.csv", "text\n \n", r"a\.csv: line 2: text is '', must be text"),
        ("a.csv", "word\nThe\n", r"a\.csv: line 2: no column text_id; there are word"),
        ("a.jsonl", '{"text": 5}', r"a\.jsonl: line 1: text is 5, must be text"),
        ("a.csv", "text_id,word,unk,unk_given\n1,The,a,b\n", r"a\.csv: line 2: column unk would .* unk_given.* rename"),
        ("a.jsonl", "{", r"a\.jsonl: line 1: not JSON"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        read_texts(written(tmp_path, name, content), SurprisalConfig())


def test_other_refusals(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_texts(tmp_path / "none.txt", SurprisalConfig())
    with pytest.raises(ConfigError, match=r"text=.*a\.doc: must end in \.csv"):
        read_texts(written(tmp_path, "a.doc", "x"), SurprisalConfig())
    with pytest.raises(InputError, match="no column document"):
        read_texts(written(tmp_path, "a.csv", "text\nThe cats.\n"), DOCUMENTS)
    for values, message in (
        ({"context": "page"}, r"surprisal\.context=page: must be one of document, text"),
        ({"window": 1}, r"surprisal\.window=1"),
        ({"step": 0}, r"surprisal\.step=0"),
        ({"text_column": "word"}, "must be four different names"),
    ):
        with pytest.raises(ConfigError, match=message):
            SurprisalConfig(**values)
