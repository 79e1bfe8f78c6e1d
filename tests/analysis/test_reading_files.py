"""Readers of files of reading times, on small files."""

import pytest

from analysis.reading.config import ReadingConfig
from analysis.reading.files import read_times
from pairscale.errors import InputError

TABLE = "text,number,word,time\na,1,The,\na,2,cat,300\na,3,slept.,310\na,4,Mr.,290\na,5,Fox,280\na,6,left!,300\n"


def written(tmp_path, text, name="times.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_table_has_words_sentences_and_times(tmp_path):
    words = read_times(written(tmp_path, TABLE), ReadingConfig())
    assert words["word"].tolist() == ["The", "cat", "slept.", "Mr.", "Fox", "left!"]
    assert words["sentence"].tolist() == [1, 1, 1, 2, 2, 2]  # Mr. ends none
    assert words["time"].fillna(0).tolist() == [0, 300, 310, 290, 280, 300]


def test_natural_stories_have_means_of_readings_within_limits_and_quotation_marks_are_text(tmp_path):
    words = ('"The', "cat", 'slept."', "Then", "it", "ran.")
    lines = ["WorkerId\titem\tzone\tRT\tword"]
    lines += [f"w{n}\t3\t{zone}\t{300 + n}\t{word}" for n in (1, 2) for zone, word in enumerate(words, start=1)]
    lines += [f"w3\t3\t1\t20\t{words[0]}", f"w3\t3\t2\t9000\t{words[1]}"]
    path = written(tmp_path, "\n".join(lines) + "\n", "processed_RTs.tsv")
    table = read_times(path, ReadingConfig(form="natural_stories"))
    assert table["word"].tolist() == list(words)
    assert table["sentence"].tolist() == [1, 1, 1, 2, 2, 2]
    assert table["time"].tolist() == [301.5] * 6
    every = read_times(path, ReadingConfig(form="natural_stories", lowest=None, highest=None))
    assert every["time"].tolist()[:3] == [(301 + 302 + 20) / 3, (301 + 302 + 9000) / 3, 301.5]
    text = "word\tzone\titem\tnItem\tmeanItemRT\ncat\t2\t1\t9\t31.5\nThe\t1\t1\t9\t300.5\n"  # means, in any order
    means = read_times(written(tmp_path, text, "processed_wordinfo.tsv"), ReadingConfig(form="natural_stories"))
    assert means[["word", "time"]].to_numpy().tolist() == [["The", 300.5], ["cat", 31.5]]


def test_a_file_of_words_fills_the_gaps_of_times(tmp_path):
    gap = written(tmp_path, "item\tzone\tword\tWorkerId\tRT\n1\t1\tThe\tw\t300\n1\t3\truns\tw\t310\n", "rts.tsv")
    words = written(tmp_path, "item\tzone\tword\n1\t1\tThe\n1\t2\tdog\n1\t3\truns\n", "all_stories.tok")
    with pytest.raises(InputError, match=r"word 3 of text 1 .*reading.words"):
        read_times(gap, ReadingConfig(form="natural_stories"))
    table = read_times(gap, ReadingConfig(form="natural_stories", words=str(words)))
    assert table["word"].tolist() == ["The", "dog", "runs"]
    assert table["time"].fillna(0).tolist() == [300, 0, 310]


def test_sentences_of_babylm_are_made_of_contexts_and_none_is_restored(tmp_path):
    rows = [("The dog", "barks.", 310, 5), ("The", "dog", 300, 9), ("None of", "us", 1, 2), ("", "of", 2, 12),
            ("The", "dog", 305, 9), ("The dog", "ran.", 320, 7)]  # fmt: skip
    text = "item,word,self_paced_reading_time,RTfirstpass,Subtlex_log10\n"
    text += "".join(f"{item},{word},{time},{time + 1},{log}\n" for item, word, time, log in rows)
    path = written(tmp_path, text)
    words = read_times(path, ReadingConfig(form="babylm"))
    assert sorted(words.groupby("text")["word"].agg(" ".join)) == ["None of us", "The dog barks.", "The dog ran."]
    assert sorted(words["time"].dropna()) == [1, 2, 300, 305, 310, 320]
    assert words["log_frequency"].tolist().count(9) == 2
    first_pass = read_times(path, ReadingConfig(form="babylm", measure="RTfirstpass"))
    assert (first_pass["time"] - words["time"]).dropna().eq(1).all()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("text,number,word\na,1,b\n", "no column time.*text, number, word"),
        ("text,number,word,time\na,0,b,1\n", "line 2: number is '0'"),
        ("text,number,word,time\na,1,b,fast\n", "line 2: time is 'fast'"),
        ("text,number,word,time\na,1,,1\n", "line 2: word is ''"),
        ("text,number,word,time\na,1,b,3\na,1,c,4\n", "word 1 of text a"),
        ("text,number,word,time,frequency\na,1,b,3,-1\n", "line 2: frequency is '-1'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_one_line(tmp_path, text, fault):
    with pytest.raises(InputError, match=rf"times\.csv: .*{fault}") as error:
        read_times(written(tmp_path, text), ReadingConfig())
    assert "\n" not in str(error.value)
