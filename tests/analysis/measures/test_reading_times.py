"""Readers of files of reading times, on files in miniature."""

import pandas as pd
import pytest

from analysis.measures.reading.config import ReadingConfig
from analysis.measures.reading.forms import read_times
from analysis.measures.reading.predictors import lagged, log_frequencies, rows_of
from analysis.measures.reading.times import words_rows
from corpora.word_counts import Counts
from pairscale.errors import ConfigError, InputError
from tests.support.reading_files import made_up_table


def written(tmp_path, text, name="times.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


TABLE = "text,number,word,time\na,1,The,\na,2,cat,300\na,3,slept.,310\na,4,Mr.,290\na,5,Fox,280\na,6,left!,300\n"


def test_a_table_has_words_sentences_and_readings(tmp_path):
    times = read_times(written(tmp_path, TABLE), ReadingConfig())
    assert times.words["word"].tolist() == ["The", "cat", "slept.", "Mr.", "Fox", "left!"]
    assert times.words["sentence"].tolist() == [1, 1, 1, 2, 2, 2]  # Mr. ends none
    assert times.readings["word"].tolist() == [1, 2, 3, 4, 5]
    assert times.participants == 0
    assert [row["text_id"] for row in words_rows(times)] == ["a:1"] * 3 + ["a:2"] * 3
    assert {row["document"] for row in words_rows(times)} == {"a"}


def test_readings_of_natural_stories_are_of_participants_and_quotation_marks_are_text(tmp_path):
    lines = ["WorkerId\titem\tzone\tRT\tword"]
    lines += [f'w{person}\t3\t{zone}\t{300 + 10 * person + zone}\t{word}' for person in (1, 2)
              for zone, word in enumerate(('"The', "cat", 'slept."', "Then", "it", "ran."), start=1)]  # fmt: skip
    lines.append("w2\t3\t4\t99999\tThen")
    path = written(tmp_path, "\n".join(lines) + "\n", "processed_RTs.tsv")
    config = ReadingConfig(form="natural_stories", spillover=0)
    times = read_times(path, config)
    assert times.words["word"].iloc[0] == '"The'
    assert times.words["sentence"].tolist() == [1, 1, 1, 2, 2, 2]
    assert times.participants == 2
    rows = rows_of(times, times.words["number"].notna().to_numpy(), config)
    assert rows.readings_excluded == 1  # 99,999 ms
    assert rows.table["word"].tolist() == [1, 4]  # neither first nor last of its sentence
    assert rows.table["time"].tolist() == [317.0, 320.0]  # means over two participants
    mixed = rows_of(times, times.words["number"].notna().to_numpy(), ReadingConfig(form="natural_stories", spillover=0,
                    regression="mixed"))  # fmt: skip
    assert mixed.table["participant"].tolist() == ["w1", "w1", "w2", "w2"]


def test_means_of_natural_stories_are_read_as_they_are(tmp_path):
    text = "word\tzone\titem\tnItem\tmeanItemRT\ncat\t2\t1\t9\t310.5\nThe\t1\t1\t9\t300.5\n"
    times = read_times(written(tmp_path, text, "processed_wordinfo.tsv"), ReadingConfig(form="natural_stories"))
    assert times.words["word"].tolist() == ["The", "cat"]
    assert times.readings["time"].tolist() == [310.5, 300.5]


def test_a_file_of_words_fills_the_gaps_of_times(tmp_path):
    gap = written(tmp_path, "item\tzone\tword\tWorkerId\tRT\n1\t1\tThe\tw\t300\n1\t3\truns\tw\t310\n", "rts.tsv")
    words = written(tmp_path, "item\tzone\tword\n1\t1\tThe\n1\t2\tdog\n1\t3\truns\n", "all_stories.tok")
    with pytest.raises(InputError, match=r"text 1 has no word 2, .*reading.words=FILE"):
        read_times(gap, ReadingConfig(form="natural_stories"))
    times = read_times(gap, ReadingConfig(form="natural_stories", words=str(words)))
    assert times.words["word"].tolist() == ["The", "dog", "runs"]
    assert times.readings["time"].tolist() == [300, 310]


def test_sentences_of_babylm_are_made_of_contexts(tmp_path):
    rows = [("The dog", "barks.", 310, 5), ("The", "dog", 300, 9), ("None of", "us", 1, 2), ("None", "of", 2, 12),
            ("The", "dog", 305, 9), ("The dog", "ran.", 320, 7)]  # fmt: skip
    text = "item,word,self_paced_reading_time,RTfirstpass,Subtlex_log10\n"
    text += "".join(f"{item},{word},{time},{time + 1},{log}\n" for item, word, time, log in rows)
    path = written(tmp_path, text)
    times = read_times(path, ReadingConfig(form="babylm"))
    sentences = times.words.groupby("text")["word"].agg(" ".join)
    assert sorted(sentences) == ["None of us", "The dog barks.", "The dog ran."]
    assert len(times.readings) == 6
    assert times.words["log_frequency"].tolist().count(9) == 2
    first_pass = read_times(path, ReadingConfig(form="babylm", measure="RTfirstpass"))
    assert (first_pass.readings["time"] - times.readings["time"]).eq(1).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,number,word\na,1,b\n", "line 2: no column time; there are text, number, word"),
        ("text,number,word,time\na,0,b,1\n", "line 2: number is '0', must be a whole number from 1"),
        ("text,number,word,time\na,1,b,fast\n", "line 2: time is 'fast', must be a number"),
        ("text,number,word,time\na,1,b,\n", "holds no time"),
        ("text,number,word,time\na,1,b,3\na,1,c,4\n", "line 3: word 1 of text a is 'c', in an earlier row 'b'"),
        ("text,number,word,time\na,1,b,3\na,3,c,4\n", "text a has no word 2"),
        ("text,number,word,time,frequency\na,1,b,3,0\n", "line 2: frequency is 0, must be above 0"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_in_a_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        read_times(written(tmp_path, text), ReadingConfig())


def test_values_out_of_range_are_refused():
    for values in ({"form": "csv"}, {"folds": 1}, {"lowest": 500.0, "highest": 100.0}, {"formula": "length"}):
        with pytest.raises(ConfigError, match=f"reading.{list(values)[-1]}"):
            ReadingConfig(**values)


def test_words_left_out_are_counted_by_reason(tmp_path):
    table = made_up_table(texts=2, sentences=3, words=5)
    table.loc[2, "time"] = None
    path = tmp_path / "times.csv"
    table.to_csv(path, index=False)
    times = read_times(path, ReadingConfig())
    known = times.words["number"].ne(8).to_numpy()  # the eighth word of both texts, and the one after it
    rows = rows_of(times, known, ReadingConfig())
    assert rows.excluded["words"].tolist() == [1, 12, 0, 4, 13]
    assert rows.table.columns[-2:].tolist() == ["length", "length_1"]
    words = times.words["word"].str.len()
    assert rows.table["length_1"].tolist() == [words[at - 1] for at in rows.table["word"]]


def test_words_before_are_of_the_same_text():
    lags = lagged(pd.Series([1.0, 2.0, 3.0, 4.0]).to_numpy(), pd.Series(["a", "a", "b", "b"]), 1)
    assert pd.Series(lags[1]).fillna(-1).tolist() == [-1, 1, -1, 3]


def test_frequency_is_that_of_the_rarest_part_whatever_its_capitals():
    from collections import Counter

    counts = Counts(Counter({"The": 2, "the": 6, "well": 1, ",": 90, "known": 1}), 100, 10, 10)
    per_million = 2 ** log_frequencies(["The", "the,", "unseen."], counts, "treebank")
    assert per_million.tolist() == pytest.approx([8.5e4, 8.5e4, 0.5e4])
