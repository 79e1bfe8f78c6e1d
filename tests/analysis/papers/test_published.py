"""The papers' tables and statements, typed in here, against those computed from the published accuracies."""

import re
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import norm, pearsonr

from analysis.measures.accuracies import (
    ADJECTIVE,
    ATTRACTOR,
    REGULARITY,
    against,
    by_condition,
    correlations,
    gaps,
    losses,
    paradigm_table,
    phenomenon_table,
    pooled_loss,
    wide,
)
from analysis.papers.papers import reproduce
from analysis.papers.reproduction import number_text
from analysis.papers.statements import (
    CLIMP_PARADIGMS,
    blimp_measures,
    check,
    check_printed,
    climp_measures,
)
from analysis.published import published_file
from eval.published import means_of_paradigms, read_published
from tests.support.browser import OpenPage
from tests.support.commands import run_command

MODELS = ["5-gram", "LSTM", "TXL", "GPT-2", "people"]
# Warstadt et al. 2020, table 3, in per cent, models as above.
TABLE_3 = {
    "overall": (61.2, 69.8, 69.6, 83.0, 88.6),
    "anaphor_agreement": (47.9, 91.7, 94.1, 99.3, 97.5),
    "argument_structure": (71.9, 73.2, 72.2, 81.8, 90.0),
    "binding": (64.4, 73.5, 74.7, 80.9, 87.3),
    "control_raising": (68.5, 67.0, 71.5, 81.9, 83.9),
    "determiner_noun_agreement": (70.0, 85.4, 83.0, 95.8, 92.2),
    "ellipsis": (36.9, 67.6, 77.2, 89.3, 85.0),
    "filler_gap_dependency": (60.2, 73.9, 66.6, 81.3, 86.9),
    "irregular_forms": (79.5, 89.1, 78.2, 91.9, 97.0),
    "npi_licensing": (45.5, 51.7, 55.2, 76.8, 88.1),
    "quantifiers": (53.5, 64.5, 69.3, 79.0, 86.6),
    "subject_verb_agreement": (60.3, 80.1, 76.0, 86.4, 90.9),
}
# Table 4, a paradigm of each of some phenomena.
TABLE_4 = {
    "inchoative": (51, 65, 54, 66, 82),
    "tough_vs_raising_2": (77, 93, 86, 89, 81),
    "determiner_noun_agreement_with_adj_irregular_1": (53, 76, 81, 93, 94),
    "wh_vs_that_with_gap_long_distance": (20, 14, 17, 56, 75),
    "left_branch_island_echo_question": (96, 32, 63, 52, 91),
    "superlative_quantifiers_2": (17, 83, 85, 87, 85),
}


@pytest.fixture(scope="module")
def blimp():
    return read_published("blimp")


@pytest.fixture(scope="module")
def papers():
    return {paper.name: paper for paper in reproduce()}


def test_phenomena_are_means_over_their_paradigms_as_in_table_3(blimp):
    known = published_file("blimp_paradigms").set_index("paradigm")["phenomenon"].to_dict()
    computed = phenomenon_table(means_of_paradigms(blimp, known)).set_index("phenomenon")[MODELS]
    for name, row in TABLE_3.items():
        assert list(computed.loc[name] * 100) == pytest.approx(row, abs=0.0501), name
    # The one cell that differs: printed as 48.4.
    assert computed.at["island_effects", "TXL"] * 100 == pytest.approx(48.34, abs=0.005)
    pd.testing.assert_frame_equal(computed, phenomenon_table(blimp).set_index("phenomenon")[MODELS], atol=1e-6)


def test_table_4_has_every_paradigm_with_field_and_methods(blimp):
    table = paradigm_table(blimp, published_file("blimp_paradigms")).set_index("paradigm")
    assert len(table) == 67
    assert table[["one_prefix", "two_prefix"]].sum().tolist() == [20, 20]
    assert table["phenomenon"].value_counts().to_dict() == {  # table 1
        "anaphor_agreement": 2, "argument_structure": 9, "binding": 7, "control_raising": 5,
        "determiner_noun_agreement": 8, "ellipsis": 2, "filler_gap_dependency": 7, "irregular_forms": 2,
        "island_effects": 8, "npi_licensing": 7, "quantifiers": 4, "subject_verb_agreement": 6,
    }  # fmt: skip
    assert set(table["field"]) == {"morphology", "syntax", "semantics", "syntax_semantics"}
    for name, row in TABLE_4.items():
        assert list(table.loc[name, MODELS] * 100) == pytest.approx(row, abs=0.501), name


def test_correlations_are_pearsons(blimp):
    table = wide(blimp, "paradigm")
    for row in correlations(blimp).to_dict("records"):
        expected = pearsonr(table[row["model"]], table[row["other"]])
        assert row["r"] == pytest.approx(expected.statistic)
        if row["model"] != row["other"]:
            half = norm.ppf(0.975) / np.sqrt(67 - 3)
            limits = np.tanh(np.arctanh(row["r"]) + np.array([-half, half]))
            assert [row["low"], row["high"]] == pytest.approx(limits)
        assert row["paradigms"] == 67
    r = correlations(blimp).set_index(["model", "other"])["r"]
    assert r["LSTM", "TXL"] == pytest.approx(0.9, abs=0.005)  # section 5.3


def test_correlations_use_only_shared_paradigms():
    rows = [("a", m, x) for m, x in zip("pqrs", (0.1, 0.2, 0.3, 0.9), strict=True)]
    rows += [("b", m, x) for m, x in zip("pqr", (0.2, 0.4, 0.6), strict=True)]
    rows += [("flat", m, 0.5) for m in "pqrs"]
    table = pd.DataFrame(rows, columns=["model", "name", "accuracy"]).assign(level="paradigm")
    r = correlations(table).set_index(["model", "other"])
    assert r.loc[("a", "b"), "r"] == pytest.approx(1)
    assert r.loc[("a", "b"), "paradigms"] == 3
    assert np.isnan(r.loc[("a", "flat"), "r"])


def test_losses_equal_those_of_section_6(blimp):
    adjective = losses(by_condition(blimp, ADJECTIVE)).set_index("model")["loss"]
    assert round(adjective["5-gram"], 2) == 0.35
    assert round(adjective["LSTM"], 2) == round(adjective["TXL"], 2) == 0.05
    attractor = losses(by_condition(blimp, ATTRACTOR)).set_index("model")["loss"]
    assert (round(attractor["LSTM"], 2), round(attractor["TXL"], 2)) == (0.20, 0.05)
    irregular = pooled_loss(blimp, REGULARITY)
    assert round(irregular["LSTM"], 3) == 0.052  # note 15
    assert irregular["TXL"] < 0.013
    # By hand, from the cells: (.883 + .863 + .854 + .904 - .519 - .497 - .530 - .554) / 4
    assert adjective["5-gram"] == pytest.approx(0.351)


def test_no_other_paradigms_without_an_attractor_give_the_stated_losses(blimp):
    table = wide(blimp, "paradigm")
    plain = [f"{kind}_plural_subject_verb_agreement_{i}" for kind in ("regular", "irregular") for i in (1, 2)]
    held = table.loc[["distractor_agreement_relational_noun", "distractor_agreement_relative_clause"]].mean()
    fitting = []
    for chosen in (list(c) for n in range(1, 5) for c in combinations(plain, n)):
        loss = table.loc[chosen].mean() - held
        if round(loss["LSTM"], 2) == 0.20 and round(loss["TXL"], 2) == 0.05:
            fitting.append(tuple(chosen))
    assert fitting == [ATTRACTOR["Subject-verb agreement"]["no attractor"]]


def test_a_model_without_a_paradigm_of_a_panel_is_left_out_of_it(blimp):
    accuracies = blimp[~((blimp["model"] == "TXL") & (blimp["name"] == "distractor_agreement_relative_clause"))]
    assert set(by_condition(accuracies, ATTRACTOR)["model"]) == set(MODELS) - {"TXL"}
    assert set(by_condition(accuracies, ADJECTIVE)["model"]) == set(MODELS)
    assert by_condition(blimp[blimp["level"] != "paradigm"], ADJECTIVE).empty


def test_gaps_to_people_equal_those_of_section_5(blimp):
    gap = gaps(blimp).set_index(["name", "model"])["gap"]
    assert gap["island_effects", "GPT-2"] == pytest.approx(-0.12, abs=0.005)  # section 5.1
    above = {name for name, model in gap.index if model == "GPT-2" and gap[name, "GPT-2"] > 0}
    assert above == {"anaphor_agreement", "determiner_noun_agreement", "ellipsis"}
    assert "people" not in set(gap.index.get_level_values("model"))


def test_the_statements_that_cannot_be_reproduced_are_known(papers):
    """A statement that changes sides shows a change of our code or of the data."""
    differing = {
        (name, row["place"], row["statement"])
        for name, paper in papers.items()
        for row in paper.checks.to_dict("records")
        if not row["agrees"]
    }
    assert {(name, place) for name, place, _ in differing} == {
        ("blimp", "section 1"), ("blimp", "section 6.1 and figure 3"), ("blimp", "section 6.2 and figure 4"),
        ("blimp", "table 3"), ("blimp", "table 4"), ("climp", "section 1"), ("climp", "section 5"),
        ("methods", "section 5"),
    }  # fmt: skip
    statements = [statement for name, place, statement in differing if name == "blimp" and place.startswith("section")]
    assert len(statements) == 4
    assert all("GPT-2" in statement for statement in statements)
    assert {name: len(paper.checks) for name, paper in papers.items()} == {
        "blimp": 34, "climp": 20, "methods": 11, "diagnostics": 0, "syntaxgym": 3,
    }  # fmt: skip


def test_a_changed_accuracy_fails_its_checks(blimp):
    swapped = blimp.assign(model=blimp["model"].replace({"LSTM": "GPT-2", "GPT-2": "LSTM"}))
    before, after = (check("blimp", blimp_measures(table))["agrees"].sum() for table in (blimp, swapped))
    assert before - after > 10
    assert check_printed("blimp", swapped)["ours"].lt(check_printed("blimp", blimp)["ours"]).all()


def test_climps_overall_accuracy_is_a_mean_over_sixteen_paradigms(papers):
    assert sum(CLIMP_PARADIGMS.values()) == 16
    # Table 2, Chinese BERT: three paradigms of classifiers, five of verb complements, two of coverbs.
    mean = (3 * 92.9 + 5 * 93.0 + 53.1 + 69.0 + 2 * 87.9 + 86.2 + 67.7 + 50.8 + 62.4) / 16
    measures = climp_measures(read_published("climp"), 0.886)
    assert measures["mean Chinese BERT"] * 100 == pytest.approx(mean)
    assert round(mean, 1) == 81.8
    table = next(item for item in papers["climp"].exhibits if item.name == "climp-table2").table.set_index("model")
    assert table.loc["LSTM-0.4M-word", "overall"] == 0.606  # printed as a second LSTM-2M-word
    assert table.loc["LSTM-2M-word", "overall"] == 0.66


def test_words_are_compared_with_characters_in_climps_numbers(papers):
    table = next(item for item in papers["climp"].exhibits if item.name == "climp-units").table
    gain = table.set_index(["kind", "size"])["gain"]
    assert gain["LSTM", "0.4M"] == pytest.approx(0.632 - 0.606)
    assert gain["5-gram", "2M"] == pytest.approx(0.657 - 0.590)
    assert (gain > 0).sum() == 3
    one = pd.DataFrame({"kind": ["a", "b"], "unit": ["words", "characters"], "accuracy": [0.5, 0.6]})
    assert against(one, "unit").empty


def test_the_methods_papers_tables_are_typed_correctly():
    rows = published_file("acceptability_methods").set_index(["measure", "benchmark", "method", "model"])["value"]
    assert rows["accuracy", "blimp", "yes_no", "Qwen2"] == 0.890
    assert rows["sd", "blimp", "in_template_comparative_lp", "Llama-3"] == 0.045
    assert rows["best", "climp", "ab_prompt", "Qwen2-Instruct"] == 0.825
    assert rows["accuracy", "blimp", "vote_mix_p3", "Qwen2"] == 0.902
    assert rows["share of A", "climp", "ab_prompt", "Qwen2"] == 0.359
    assert rows["correlation", "climp", "in_template_pen_lp", "mean"] == -0.269
    assert rows.index.is_unique
    deviating = rows.loc["sd"].index
    assert all(("accuracy", *key) in rows.index for key in deviating)


def test_word_shuffling_paradigms_are_those_whose_pairs_share_a_bag_of_words(real_data):
    """Ide et al., section 6: the same words, case ignored, with the final mark as a word (12 paradigms, not 13)."""
    known = published_file("blimp_paradigms").set_index("paradigm")
    for paradigm, row in known.iterrows():
        pairs = pd.read_json(real_data / "blimp" / f"{paradigm}.jsonl", lines=True, dtype=False)
        bags = [
            [sorted(re.findall(r"[\w'-]+|[^\w\s]", sentence.lower())) for sentence in pairs[side]]
            for side in ("sentence_good", "sentence_bad")
        ]
        shared = np.mean([good == bad for good, bad in zip(*bags, strict=True)])
        assert (shared > 0.5) == bool(row["word_shuffling"]), paradigm
        assert pairs["one_prefix_method"].iloc[0] == bool(row["one_prefix"])
        assert pairs["two_prefix_method"].iloc[0] == bool(row["two_prefix"])
        assert pairs["field"].iloc[0].replace("/", "_") == row["field"]


def test_wide_tables_are_cut_into_columns_that_fit(papers):
    exhibit = next(item for item in papers["climp"].exhibits if item.name == "climp-table2")
    console = Console(width=80)
    with console.capture() as captured:
        console.print(*exhibit.terminal(80), sep="\n")
    text = captured.get()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("Chinese BERT") == 2  # the first column again
    assert ".879" in text
    assert ".930" in text


def test_numbers_in_statements_are_rounded_as_in_the_paper():
    numbers = ((0.35, 2), (0.0522, 4), (64.0, 3), (0.0, 2), (-0.055, 3), (9.74e21, 3))
    assert [number_text(*args) for args in numbers] == [".35", ".0522", "64", "0", "\N{MINUS SIGN}.055", "9.7e+21"]


@pytest.fixture(scope="module")
def command_output(tmp_path_factory):
    """Return what the command printed without any runs, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("reports")
    done = run_command("analysis", "published=true", f"paths.reports={folder}", f"paths.runs={folder}/none")
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "published"


@pytest.mark.slow
def test_the_command_needs_no_runs(command_output):
    printed, folder = command_output
    for text in (
        "Table 3: phenomena",
        "BLiMP: 28 of 34 statements come out, 5 of them by a choice of paradigms that the paper does not name",
        "Figure 1: who",
        "Words against characters",
    ):
        assert text in printed
    assert re.search(r"^LSTM +TXL +\+\.90 +\[\+\.84, \+\.94\] +67$", printed, re.MULTILINE)  # figure 1
    table = pd.read_csv(folder / "blimp-table3.csv").set_index("phenomenon")
    assert list(table.loc["overall", MODELS]) == pytest.approx([0.612, 0.698, 0.696, 0.830, 0.886], abs=0.0006)
    names = {path.name for path in folder.iterdir()}
    for stem in ("blimp-figure1", "blimp-figure3-adjective", "blimp-figure3-attractor", "blimp-figure4"):
        assert {f"{stem}.{end}" for end in ("csv", "tex", "svg", "png")} <= names
    tex = (folder / "blimp-table4.tex").read_text()
    assert tex.count(r"\midrule") == 1
    assert "$-.055$" in (folder / "blimp-people.tex").read_text()
    rows = [line for line in tex.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 68
    assert {line.count("&") for line in rows} == {9}


def test_the_page_is_complete_and_opens_without_errors(command_output, browser):
    _, folder = command_output
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "src=" not in html.partition("<script")[0]
    linked = set(re.findall(r'href="([^"#]+)"', html.partition("<script")[0]))
    assert linked
    assert all((folder / name).stat().st_size > 0 for name in linked)
    for width in (1280, 420):
        opened = OpenPage(browser, folder / "report.html", width)
        assert opened.console == []
        assert opened.overflow == 0
        assert opened.charts == len(re.findall(r'data-chart="', html.partition("<script")[0]))
    ids = re.findall(r' id="([^"]+)"', html.partition("<script")[0])
    assert all(a != b for a, b in pairwise(sorted(ids)))


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (("study=demo",), "study=demo"),
        (("benchmark=climp", "ties=half"), "benchmark=climp, ties=half"),
        (("experiment=demo",), "experiment=demo"),
        (("analysis.method=mean_lp",), "analysis.method=mean_lp"),
    ],
)
def test_keys_of_a_study_are_refused_for_papers(tmp_path, overrides, named):
    done = run_command("analysis", "published=true", *overrides, f"paths.reports={tmp_path}")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        f"pairscale analysis: published=true: takes paths.reports and analysis.figure; leave out {named}"
    )
    assert not list(tmp_path.iterdir())


def test_published_is_true_or_false(tmp_path):
    done = run_command("analysis", "published=climp", f"paths.reports={tmp_path}")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "published" in done.stderr
