"""The diagnostics paper's measures from small hand-computed answers; cloze files and their tables."""

import numpy as np
import pandas as pd
import pytest

from eval.diagnostics.measures import measures
from eval.scores.files import answers_metadata, read_answer_file, write_answers
from eval.scores.schemas import CLOZE, TOPK, AnswerMetadata
from pairscale.errors import RunError
from pairscale.shares import wilson

NO = (None, None)  # probability and rank of a word that cannot be expressed


def row(item, condition, candidate, role, prob, rank, trial=None, group=None, cloze=None):
    values = (item, condition, trial, group, f"{item} {condition} {trial or ''}", candidate, role, cloze, prob, rank)
    return (*values, 1, prob is not None)


def frame(rows):
    return pd.DataFrame(rows, columns=CLOZE.names).astype({"prob": float, "rank": float, "trial": float})


def shares(measured):
    return {(row["level"], row["name"]): row["accuracy"] for row in measured.to_dict("records")}


def cprag():
    """Return four items, whose expected word is first, third by less than .01, sixth, and not expressible."""
    words = [
        ("0", [(0.5, 1), (0.1, 2), (0.05, 3)]),
        ("1", [(0.105, 3), (0.1, 4), (0.02, 9)]),
        ("2", [(0.03, 6), (0.01, 9), (0.05, 5)]),
        ("3", [NO, (0.1, 2), (0.2, 1)]),
    ]
    rows = []
    for item, three in words:
        for (prob, rank), role in zip(three, ("expected", "within_category", "between_category"), strict=True):
            rows.append(row(item, "original", role, role, prob, rank))
        drawn = {"0": (1, 1, 7), "1": (2, 9, 1), "2": (9, 9, 9), "3": (None, None, None)}[item]
        for trial, rank in enumerate(drawn, start=1):
            prob = None if rank is None else 0.1
            rows.append(row(item, "shuffled", "word", "expected", prob, rank, trial))
    return frame(rows)


def test_measures_of_cprag():
    measured = measures("cprag", cprag())
    assert shares(measured) == {
        ("accuracy@1", "original"): 1 / 4,
        ("accuracy@1", "shuffled"): pytest.approx((1 / 4 + 1 / 4 + 1 / 4) / 3),
        ("accuracy@5", "original"): 2 / 4,
        ("accuracy@5", "shuffled"): pytest.approx((2 / 4 + 1 / 4 + 1 / 4) / 3),
        ("sensitivity", "original"): 2 / 4,  # the fitting word above both others
        ("sensitivity>.01", "original"): 1 / 4,
    }
    rows = measured.set_index(["level", "name"])
    assert rows.loc[("accuracy@5", "original"), ["low", "high"]].tolist() == list(wilson(0.5, 4))
    shuffled = rows.loc[("accuracy@5", "shuffled")]
    assert (shuffled["items"], shuffled["trials"]) == (4, 3)
    assert shuffled["sd"] == pytest.approx(np.std([0.5, 0.25, 0.25]))
    assert rows.loc[("accuracy@1", "shuffled"), "sd"] == 0
    whole = rows.loc[("sensitivity", "original")]
    assert (whole["unknown"], whole["known_items"], whole["known"]) == (1, 3, pytest.approx(2 / 3))
    assert np.isnan(whole["sd"])


def test_sensitivity_needs_a_difference_above_the_threshold():
    roles = ("expected", "within_category", "between_category")
    for better, right in ((0.2601, 1.0), (0.2599, 0.0)):
        probs = (better, 0.25, 0.1)
        rows = [row("0", "original", role, role, prob, 1) for role, prob in zip(roles, probs, strict=True)]
        accuracies = shares(measures("cprag", frame(rows)))
        assert accuracies["sensitivity", "original"] == 1.0
        assert accuracies["sensitivity>.01", "original"] == right
    measured = measures("cprag", frame([row("0", "original", role, role, 0.1, 1) for role in roles]))
    assert shares(measured)["sensitivity", "original"] == 0.0  # a tie is no preference
    assert measured["ties"].tolist() == [0, 0, 1, 1]


def role():
    """Return four pairs: cloze of the contexts .1 to .8, the target more probable after -a in pairs 1, 2 and 3."""
    rows = []
    for number, (a, b) in enumerate([(0.5, 0.1), (0.4, 0.395), (0.3, 0.2), (0.1, 0.2)], start=1):
        for side, prob, cloze in (("a", a, number / 10), ("b", b, (number + 4) / 10)):
            item, rank = f"{number}-{side}", 1 if side == "a" else 6
            rows.append(row(item, "original", "seen", "expected", 0.1, rank, cloze=cloze))
            rows.append(row(item, "original", "fed", "target", prob, 1, cloze=0.0))
            if number == 1:  # a second expected word
                rows.append(row(item, "original", "hired", "expected", *(NO if side == "a" else (0.1, 2)), cloze=cloze))
            rows.append(row(item, "generic_both", "seen", "expected", 0.1, 2, cloze=cloze))
    return frame(rows)


def test_measures_of_role():
    measured = measures("role", role())
    # Quarters of .1 ... .8 end at .275, .45, .625 and .8.
    assert shares(measured) == {
        ("accuracy@1", "original"): 4 / 8,
        ("accuracy@1", "generic_both"): 0,
        ("accuracy@1", "cloze ≤ 0.28"): 2 / 2,
        ("accuracy@1", "cloze ≤ 0.45"): 2 / 2,
        ("accuracy@1", "cloze ≤ 0.62"): 0 / 2,
        ("accuracy@1", "cloze ≤ 0.80"): 0 / 2,
        ("accuracy@5", "original"): 5 / 8,  # 1-b through its second word
        ("accuracy@5", "generic_both"): 1,
        ("accuracy@5", "cloze ≤ 0.28"): 2 / 2,
        ("accuracy@5", "cloze ≤ 0.45"): 2 / 2,
        ("accuracy@5", "cloze ≤ 0.62"): 1 / 2,
        ("accuracy@5", "cloze ≤ 0.80"): 0 / 2,
        ("sensitivity", "original"): 3 / 4,
        ("sensitivity>.01", "original"): 2 / 4,
    }
    assert list(shares(measured))[:3] == [
        ("accuracy@1", "original"), ("accuracy@1", "generic_both"), ("accuracy@1", "cloze ≤ 0.28"),
    ]  # fmt: skip
    rows = measured.set_index(["level", "name"])
    assert rows.loc[("sensitivity", "original"), "items"] == 4
    assert (measured["unknown"] == 0).all()  # 1-a has another word that can be expressed


def neg():
    rows = []
    prefers_true = {
        ("SIMP-0", "simp_affirmative", None): True,
        ("SIMP-0", "simp_negative", None): False,
        ("SIMP-1", "simp_affirmative", None): True,
        ("SIMP-1", "simp_negative", None): False,
        ("NAT-0", "nat_affirmative", "Y"): True,
        ("NAT-0", "nat_negative", "Y"): True,
        ("NAT-1", "nat_affirmative", "N"): True,
        ("NAT-1", "nat_negative", "N"): False,
    }
    for (item, condition, group), right in prefers_true.items():
        rank = {"SIMP-0": 1, "SIMP-1": 5}.get(item, 9)
        rows.append(row(item, condition, "one", "true", 0.5 if right else 0.1, rank, group=group))
        rows.append(row(item, condition, "two", "false", 0.3, 2, group=group))
    return frame(rows)


def test_measures_of_neg():
    measured = measures("neg", neg())
    sensitivity = {
        "simp affirmative": 1.0, "simp negative": 0.0, "natural affirmative": 1.0, "natural negative": 1.0,
        "less natural affirmative": 1.0, "less natural negative": 0.0, "natural both": 1.0, "less natural both": 0.5,
    }  # fmt: skip
    assert shares(measured) == {
        ("accuracy@1", "simp affirmative"): 1 / 2,
        ("accuracy@5", "simp affirmative"): 1.0,
        **{("sensitivity", name): share for name, share in sensitivity.items()},
        **{("sensitivity>.01", name): share for name, share in sensitivity.items()},
    }
    assert measured.set_index(["level", "name"]).loc[("sensitivity", "less natural both"), "items"] == 2


def metadata(**values):
    default = dict.fromkeys(AnswerMetadata.__required_keys__, "x") | {
        "policy": {"context": "none"}, "step": None, "parameters": {}, "sample_words": None,
        "benchmark": {"name": "x", "digest": "x"}, "model": {"name": "x", "digest": "x"},
    }  # fmt: skip
    return default | values


def topk(cloze):
    fixed = cloze[cloze["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    rows = [
        (row["item"], row["condition"], row["context"], place, word, 0.5 / place)
        for row in fixed.to_dict("records")
        for place, word in enumerate(["car", "house"], start=1)
    ]
    return pd.DataFrame(rows, columns=TOPK.names)


def test_cloze_files_need_each_other_and_damaged_ones_are_refused(tmp_path):
    assert answers_metadata(tmp_path, "topk", "cloze") is None
    write_answers(tmp_path, {"topk": topk(neg()), "cloze": neg()}, metadata())
    assert answers_metadata(tmp_path, "topk", "cloze") == metadata()
    (tmp_path / "topk.parquet").unlink()
    assert answers_metadata(tmp_path, "topk", "cloze") is None
    with pytest.raises(RunError, match=r"topk\.parquet: .* doesn't exist"):
        read_answer_file(tmp_path, "topk")[0]
    (tmp_path / "topk.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunError, match=r"topk\.parquet: this file is damaged \(.* Remove this file and score again"):
        answers_metadata(tmp_path, "topk", "cloze")
