"""The find command: sentences, counts, and precision and recall from a sheet that a person fills in."""

import csv

import pytest

from corpora.annotate.run import annotate
from corpora.find import run as find
from pairscale.command.compose import compose
from pairscale.errors import InputError
from pairscale.shares import wilson

PASSIVE = """\
# text = Dogs were seen.
1	Dogs	dog	NOUN	NNS	Number=Plur	3	nsubj:pass	_	_
2	were	be	AUX	VBD	Tense=Past|VerbForm=Fin	3	aux:pass	_	_
3	seen	see	VERB	VBN	Tense=Past|VerbForm=Part|Voice=Pass	0	root	_	SpaceAfter=No
4	.	.	PUNCT	.	_	3	punct	_	_

"""
OTHER = """\
# text = They sleep.
1	They	they	PRON	PRP	Case=Nom|Number=Plur	2	nsubj	_	_
2	sleep	sleep	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_

"""


@pytest.fixture
def words(tmp_path):
    """Write a treebank with two passives in six sentences and no test split, annotate it, and return a command line."""
    (tmp_path / "t-ud-train.conllu").write_text((PASSIVE + OTHER * 2) * 2, encoding="utf-8")
    (tmp_path / "t-ud-dev.conllu").write_text(OTHER, encoding="utf-8")
    words = ["corpus=conllu", "corpus.name=t", f"corpus.path={tmp_path}", f"paths.store={tmp_path / 'store'}"]
    annotate(compose("annotate", [*words, "parser=conllu"]))
    return [*words, "ablate.layer=conllu", "filter=passive"]


def test_matches_are_marked_and_counted_in_each_split_of_the_text(words, capsys):
    find(compose("find", [*words, "find.tree=true"]))
    printed = capsys.readouterr().out
    assert printed.count("[were] [seen].") == 2
    (row,) = {line for line in printed.splitlines() if "aux:pass" in line}  # of both trees
    assert row.split()[:6] == ["2", "were", "seen", "3", "aux:pass", "AUX"]
    assert "auxiliary (0)" in row
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line.strip()}
    words_of_train = 2 * 4 + 4 * 3  # reference words: each ends with its full stop
    assert rows["train"][:3] == ["2", f"{2e6 / words_of_train:,.1f}", "2"]
    assert rows["valid"][0] == "0"
    assert rows["test"] == ["0"]  # a split without text has no rate
    assert rows["all"][0] == "2"


def test_a_sheet_that_is_filled_in_gives_precision_and_recall(words, tmp_path, capsys):
    path = tmp_path / "sheet.csv"
    command = [*words, f"find.sheet={path}"]
    find(compose("find", command))
    assert "6 sentences to judge are in" in capsys.readouterr().out
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    passives = [row for row in rows if row["sentence"] == "Dogs were seen."]
    passives[1]["judgement"] = "0"  # a match that is none
    for row in rows:
        row["judgement"] = row["judgement"] or str(int(row is passives[0]))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    find(compose("find", command))
    low, high = wilson(1 / 2, 2)
    printed = capsys.readouterr().out
    assert f"precision 50.0% (95% interval {low:.1%} to {high:.1%}, 2 sentences)" in printed
    assert "recall    100.0% (" in printed
    filled_in = path.read_text(encoding="utf-8")
    for before, after, message in (
        (",0", ",perhaps", r"sheet\.csv:\d: judgement=perhaps"),
        ("judgement", "judged", r"sheet\.csv:1: .*no column judgement"),
        ("They sleep.", "They slept.", r"sheet\.csv:\d: this is not the sentence in line \d"),
        ("\n4,", "\n99,", r"sheet\.csv:\d: line=99"),
    ):
        assert before in filled_in
        path.write_text(filled_in.replace(before, after, 1), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            find(compose("find", command))
