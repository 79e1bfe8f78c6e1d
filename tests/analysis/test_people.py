"""People who answered a questionnaire: whose scores their answers are about, and their accuracy by unit."""

import json

import pandas as pd
import pytest

from analysis.report.people import exhibit, read_people
from analysis.study.long_table import accuracies
from eval.scores.files import read_items, write_items
from pairscale.errors import InputError
from tests.support.questionnaires import STUDY, config

DIGEST = "be" * 32


@pytest.fixture
def study(tmp_path):
    """Return the folder of runs on binding_1, binding_2 and islands_1, two pairs each, and their first score folder."""
    folders = STUDY.write(tmp_path / "runs")
    return tmp_path / "runs", folders


def write_sheet(folder, items, wrong=(), rater="1", digest=DIGEST):
    """Write the answers of a person to pairs of the study, wrong ones in the paradigms of `wrong`."""
    answers = [
        {"paradigm": row["paradigm"], "pair_id": row["pair_id"], "first": row["good"], "second": row["bad"],
         "chosen": "second" if row["paradigm"] in wrong else "first", "ms": 900}
        for row in items.to_dict("records")
    ]  # fmt: skip
    content = {
        "schema": "pairscale-answers", "version": 2, "benchmark": "blimp", "digest": digest, "rater": rater * 16,
        "native": True, "answers": answers,
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / f"{rater}.json").write_text(json.dumps(content))
    return [str(folder)]


def test_people_have_the_accuracy_of_their_answers(study, tmp_path):
    folder, folders = study
    items, _ = read_items(folders[0].scores("blimp"))
    write_sheet(tmp_path / "answers", items, wrong=["binding_2"], rater="1")
    paths = write_sheet(tmp_path / "answers", items, wrong=["binding_2", "islands_1"], rater="2")
    people = read_people(paths, accuracies(STUDY.name, folder=folder), config(), folder=folder)["blimp"]
    assert people.table["raters"].eq(2).all()
    accuracy = people.table.set_index("name")["accuracy"]
    assert accuracy.to_dict() == pytest.approx(
        {"binding_1": 1, "binding_2": 0, "islands_1": 0.5, "binding": 0.5, "islands": 0.5, "overall": 0.5}
    )
    shown = exhibit(people, threshold=0.8)
    assert shown.table["phenomenon"].tolist() == ["overall", "binding", "islands"]
    assert "1 of 3 paradigms" in shown.takeaways[0][1]


def test_units_whose_paradigms_were_not_all_asked_are_left_out(study, tmp_path):
    folder, folders = study
    items, _ = read_items(folders[0].scores("blimp"))
    table = accuracies(STUDY.name, folder=folder)
    paths = write_sheet(tmp_path / "answers", items[items["paradigm"] != "binding_2"])
    people = read_people(paths, table, config(), folder=folder)["blimp"]
    assert people.table.dropna(subset="accuracy")["name"].tolist() == ["binding_1", "islands_1", "islands"]
    asked = read_people(paths, table[table["paradigm"] != "binding_2"], config(), folder=folder)["blimp"]
    assert asked.table["accuracy"].notna().all()
    with pytest.raises(InputError, match="no run was scored on the paradigms"):
        read_people(paths, table[table["paradigm"] == "binding_2"], config(), folder=folder)


def test_answers_belong_to_every_label_with_their_pairs(study, tmp_path):
    folder, folders = study
    items, _ = read_items(folders[0].scores("blimp"))
    for label, digest in (("blimp+context-eos-32", DIGEST), ("blimp+study-k5", "ad" * 32)):
        folders[0].scores(label).mkdir()
        write_items(folders[0].scores(label), items, "blimp", digest)
    of_blimp = accuracies(STUDY.name, folder=folder)
    labels = ["blimp", "blimp+context-eos-32", "blimp+study-k5"]
    table = pd.concat([of_blimp.assign(benchmark=label) for label in labels])
    paths = write_sheet(tmp_path / "answers", items)
    assert set(read_people(paths, table, config(), folder=folder)) == {"blimp", "blimp+context-eos-32"}
    paths = write_sheet(tmp_path / "answers", items, rater="2", digest="0" * 64)
    with pytest.raises(InputError, match=r"no run was scored on .* blimp \(pairs 00000000\)"):
        read_people(paths, table, config(), folder=folder)
