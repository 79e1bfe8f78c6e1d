"""Surprisal by region, and success of items, from scores written by hand."""

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.scores.schemas import REGIONS, SUCCESS
from eval.syntaxgym.measures import measures
from eval.syntaxgym.suites import answer_rows, join_regions, load_suites, region_sums, success_rows
from tests.support.suites import GAPS, scores, simulated, write_suites


def sentence_of(contents):
    text, spans = join_regions(contents)
    return pd.DataFrame(spans, columns=["start", "end"]).assign(text=text)


def test_a_token_belongs_to_the_region_of_its_first_character():
    sentence = sentence_of(["The cat", "", "sleeps", "."])
    assert sentence["text"].iat[0] == "The cat sleeps ."
    words = scores((0, 3, 1), (4, 7, 2), (8, 14, 4, "unk"), (15, 16, 8), (16, 16, 16))
    assert region_sums(sentence, words).tolist() == [[3, 2, 0], [0, 0, 0], [4, 1, 1], [24, 2, 0]]
    with_spaces = scores((0, 3, 1), (3, 7, 2), (7, 8, 32), (8, 11, 4), (11, 14, 4), (14, 16, 8))
    assert region_sums(sentence, with_spaces)[:, 0].tolist() == [3, 0, 40, 8]
    across = scores((0, 5, 1), (5, 12, 2), (12, 16, 4))  # "t sleep" begins in the first region
    assert region_sums(sentence, across)[:, 0].tolist() == [3, 0, 4, 0]
    assert region_sums(sentence, words, skip_unk=True)[2].tolist() == [0, 1, 1]
    assert region_sums(sentence, scores()).tolist() == np.zeros((4, 3)).tolist()


@given(st.lists(st.text(alphabet="ab c.", max_size=6), min_size=1, max_size=5).filter("".join), st.data())
def test_regions_share_out_all_surprisal(contents, data):
    sentence = sentence_of(contents)
    if not (length := len(sentence["text"].iat[0])):
        return
    cuts = data.draw(st.sets(st.integers(1, length)))
    edges = [0, *sorted(cuts | {length})]
    tokens = [(start, end, 1.5) for start, end in pairwise(edges)]
    sums = region_sums(sentence, scores(*tokens))
    assert sums[:, 0].sum() == pytest.approx(1.5 * len(tokens))
    assert sums[:, 1].sum() == len(tokens)
    assert not sums[sentence["start"] == sentence["end"]].any()


def test_rows_of_both_files(tmp_path):
    suites = load_suites(str(write_suites(tmp_path)))
    of_text = simulated(suites)
    regions, success = answer_rows(suites, of_text, skip_unk=False).values()
    assert list(success.columns) == SUCCESS.names
    assert list(regions.columns) == REGIONS.names
    assert len(regions) == 3 * 4 * 4 + 2 * 2 * 3
    parts = success.groupby(["suite", "prediction"]).size().to_dict()
    assert parts == {("number_mini", 1): 9, ("cleft_mini", 1): 2, ("cleft_mini", 2): 2}
    verbs = regions[(regions["suite"] == "number_mini") & (regions["region"] == 3)]
    by_hand = {key: rows.set_index("condition")["surprisal"] for key, rows in verbs.groupby("item")}
    agreement = success[success["suite"] == "number_mini"]
    for row in agreement.itertuples():
        bits = by_hand[row.item]
        holds = [bits["sing"] < bits["sing_bad"], bits["plural"] < bits["plural_bad"]]
        expected = all(holds) if row.comparison is pd.NA else holds[int(row.comparison) - 1]
        assert row.success == expected
    sentences = suites.rows.drop_duplicates(["suite", "item", "condition"])["text"]
    bits = [-of_text[text].logprobs.sum() / np.log(2) for text in sentences]
    assert regions["surprisal"].sum() == pytest.approx(sum(bits))


def test_scores_are_means_over_suites(tmp_path):
    suites = load_suites(str(write_suites(tmp_path)))
    success = answer_rows(suites, simulated(suites, 3), skip_unk=False)["success"]
    first = success[(success["prediction"] == 1) & success["comparison"].isna()]
    shares = first.groupby("suite")["success"].mean()
    table = measures(success).set_index(["level", "name"])
    assert table.loc[("overall", "SG score"), "accuracy"] == shares.mean()
    assert table.loc[("overall", "all suites"), "accuracy"] == shares.mean()
    assert table.loc[("overall", "all items"), "accuracy"] == first["success"].mean()
    assert table.loc[("circuit", "Agreement"), "accuracy"] == shares["number_mini"]
    assert table.loc[("suite", "cleft_mini"), "accuracy"] == shares["cleft_mini"]
    second = success[success["prediction"] == 2]
    assert table.loc[("prediction", "cleft_mini 2"), "accuracy"] == second["success"].mean()
    part = table.loc[("comparison", "number_mini 1.2: (3;%plural%) < (3;%plural_bad%)")]
    of_part = success[(success["suite"] == "number_mini") & (success["comparison"] == 2)]
    assert part["accuracy"] == of_part["success"].mean()
    unknown = first["unk"] > 0
    assert table.loc[("overall", "all items"), "unknown"] == unknown.sum()
    assert table.loc[("overall", "all items"), "known"] == first[~unknown]["success"].mean()
    assert (table["low"] <= table["accuracy"]).all()
    assert (table["accuracy"] <= table["high"]).all()


def test_suites_in_no_circuit_count_in_all_suites_alone(tmp_path):
    suite = json.loads(json.dumps(GAPS))
    suite["meta"]["name"] = "mine"
    (tmp_path / "mine.json").write_text(json.dumps(suite))
    table = measures(answer_rows(load_suites(str(tmp_path)), defaultdict(scores), skip_unk=False)["success"])
    assert table["name"].tolist() == ["all suites", "all items", "mine", "mine 2"]
    assert table["accuracy"].tolist() == [0, 0, 0, 1]  # equal surprisals: a tie, and what the second asks for
    assert table["ties"].tolist() == [2, 2, 2, 0]


def test_unk_counts_only_in_regions_of_the_formula(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(GAPS))
    suites = load_suites(str(tmp_path))
    regions = answer_rows(suites, defaultdict(scores), skip_unk=False)["regions"]
    regions.loc[(regions["item"] == 1) & (regions["region"] == 1), "unk"] = 1
    rows = success_rows("cleft_mini", suites.formulas["cleft_mini"], regions)
    assert rows["unk"].tolist() == [2, 0, 2, 0]  # of the whole sentences, and of the first region
