"""Sections of a study's report that need only accuracies."""

import json
import re

import pandas as pd
import pytest
from scipy.stats import pearsonr

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.exhibit import Exhibit
from analysis.measures.accuracies import at_largest_size
from analysis.report.report import write_report
from analysis.sections.benchmark import study_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.published import read_published
from tests.support.browser import OpenPage
from tests.support.simulated_section import CONFIG, report_of, section_of
from tests.support.simulated_study import SimulatedStudy

EVIL = "</script><script>alert(1)</script>"
DETERMINERS = {  # a paradigm's name is its phenomenon's and a number
    "determiner_noun_agreement": (2, 0.7, 0.05),
    "determiner_noun_agreement_irregular": (2, 0.7, 0.05),
    "determiner_noun_agreement_with_adjective": (1, 0.6, 0.05),
    "determiner_noun_agreement_with_adj": (2, 0.6, 0.05),
    "determiner_noun_agreement_with_adj_irregular": (2, 0.6, 0.05),
}


def names(section):
    return [exhibit.name for exhibit in section.exhibits]


def test_conditions_appear_if_the_study_has_all_their_paradigms(tmp_path):
    section = section_of(tmp_path, phenomena=DETERMINERS)
    assert names(section) == ["correlations", "adjective", "regularity", "vocabulary", "perplexity"]
    ours = at_largest_size(section.curves)
    ours = ours[(ours["level"] == "paradigm") & (ours["model"] == "lstm_tiny")].set_index("name")["accuracy"]
    table = section.exhibits[1].table.set_index("model")
    plain = [f"determiner_noun_agreement{kind}_{i}" for kind in ("", "_irregular") for i in (1, 2)]
    assert table.at["lstm_tiny", "no adjective"] == pytest.approx(ours[plain].mean())
    assert table.at["GPT-2 (paper)", "no adjective"] == pytest.approx((0.988 + 0.977 + 0.957 + 0.953) / 4)
    assert list(table.index) == [
        "lstm_tiny", "txl_tiny", "5-gram (paper)", "LSTM (paper)", "TXL (paper)", "GPT-2 (paper)", "people",
    ]  # fmt: skip
    assert "panel" not in section.exhibits[2].table  # only one panel: the study has no subject-verb agreement


def test_paradigms_are_listed_if_they_are_blimps(tmp_path):
    known = section_of(tmp_path / "known", phenomena={"passive": (2, 0.6, 0.05), "ellipsis_n_bar": (2, 0.6, 0.05)})
    assert names(known) == ["correlations", "table4", "vocabulary", "perplexity"]
    table = known.exhibits[1]
    assert "4 of the 67 paradigms" in table.about
    assert table.table["paradigm"].tolist() == ["passive_1", "passive_2", "ellipsis_n_bar_1", "ellipsis_n_bar_2"]
    assert table.table["phenomenon"].tolist() == ["argument_structure"] * 2 + ["ellipsis"] * 2
    simulated = section_of(tmp_path / "simulated")
    assert names(simulated) == ["correlations", "vocabulary", "perplexity"]
    assert names(section_of(tmp_path / "toy", benchmark="toy")) == ["vocabulary", "perplexity"]


def test_correlations_are_over_paradigms_that_the_study_was_scored_on(tmp_path):
    section = section_of(tmp_path, phenomena={"passive": (2, 0.6, 0.05), "ellipsis_n_bar": (2, 0.6, 0.05)})
    published = read_published("blimp")
    shared = published[published["name"].isin(["passive_1", "passive_2", "ellipsis_n_bar_1", "ellipsis_n_bar_2"])]
    wide = shared.pivot(index="name", columns="model", values="accuracy")
    table = section.exhibits[0].table.set_index(["model", "other"])
    pair = ("LSTM (paper)", "people") if ("LSTM (paper)", "people") in table.index else ("people", "LSTM (paper)")
    expected = pearsonr(wide["LSTM"], wide["people"])
    assert table.at[pair, "r"] == pytest.approx(expected.statistic)
    assert table.loc[pair, ["low", "high"]].tolist() == pytest.approx(list(expected.confidence_interval()))


def climp_study(runs, tokenizers):
    """Return the exhibits and curves of a study of CLiMP, one model with each tokenizer."""
    for tokenizer in tokenizers:

        class Study(SimulatedStudy):
            def config(self, model, size, seed, tokenizer=tokenizer):
                config = super().config(model, size, seed)
                return config | {"tokenizer": {"name": tokenizer, "kind": "x", "fit_on": "train"}}

        study = Study(pairs=10, benchmark="climp", models=("lstm_tiny",), name=tokenizer)
        for folder in study.write(runs):
            target = runs / "simulated" / f"{tokenizer}-{folder.path.name}"
            target.parent.mkdir(exist_ok=True)
            folder.path.rename(target)
    judged = judgements(collect(runs, "simulated"), "climp", "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    return {exhibit.name: exhibit for exhibit in study_exhibits(judged, curves, read_published("climp"))}, curves


def test_words_are_compared_with_characters_at_each_size(tmp_path):
    exhibits, curves = climp_study(tmp_path, ("char", "jieba"))
    assert list(exhibits) == ["units", "sizes"]
    table = exhibits["units"].table
    assert table["size"].tolist() == ["125k", "250k", "500k", "1M"]
    accuracies = curves.accuracies[(curves.accuracies["level"] == "overall") & (curves.accuracies["pairs"] == "all")]
    accuracies = accuracies.set_index(["group", "size"])["accuracy"]
    assert table["words"].tolist() == [accuracies["lstm_tiny, jieba", size] for size in table["size"]]
    assert exhibits["sizes"].table.columns.tolist() == ["kind", "unit", "125k", "250k", "500k", "1M"]


def test_one_unit_alone_has_no_comparison(tmp_path):
    exhibits, _ = climp_study(tmp_path, ("char",))
    assert list(exhibits) == ["sizes"]


def test_sections_are_in_the_report_with_their_files(tmp_path, browser):
    section = section_of(tmp_path / "runs", phenomena=DETERMINERS)
    section.judged.method, section.judged.methods = "mean_lp", {}
    config = CurvesConfig(method="mean_lp", interval="auto", confidence=0.95, resamples=50, seed=1)
    path = write_report(tmp_path / "report", report_of(section, config=config))
    html = path.read_text(encoding="utf-8")
    page = html.partition("<script")[0]
    linked = set(re.findall(r'href="([^"#]+)"', page))
    assert "blimp-mean_lp-adjective.tex" in linked
    for name in linked:
        assert (tmp_path / "report" / name).stat().st_size > 0, name
    table = pd.read_csv(tmp_path / "report" / "blimp-mean_lp-adjective.csv")
    assert set(table["scores"]) == {"mean_lp"}
    opened = OpenPage(browser, path)
    assert opened.console == []
    assert opened.charts == page.count('data-chart="')


@pytest.mark.slow
def test_text_of_exhibits_is_escaped(tmp_path):
    section = section_of(tmp_path / "runs", phenomena=DETERMINERS, models=("lstm_tiny",))
    section.judged.runs["group"] = EVIL
    for table in (section.curves.slopes, section.curves.accuracies, section.curves.points):
        table["group"] = EVIL
    section.exhibits = study_exhibits(section.judged, section.curves, section.published)
    path = write_report(tmp_path / "report", report_of(section))
    html = path.read_text(encoding="utf-8")
    assert html.count("<script") == 4  # charts, files, Vega, ours
    charts = re.search(r'id="charts">(.*?)</script>', html, re.DOTALL)[1]
    assert "<" not in charts
    assert "blimp-correlations-matrix" in json.loads(charts)
    assert r"\textless{}/script\textgreater{}" in (tmp_path / "report" / "blimp-adjective.tex").read_text()


def test_an_exhibit_escapes_for_csv_and_latex(tmp_path):
    table = pd.DataFrame({"model": ["=1+1", "a_b & c"], "x%": [0.5, -0.25]})
    Exhibit("t", "A & B", "100% of {it}.", table).write(tmp_path, "p-")
    text = (tmp_path / "p-t.tex").read_text()
    assert r"\caption{A \& B. 100\% of \{it\}.}" in text
    assert r"a\_b \& c & $-.250$" in text
    assert r"model & x\% \\" in text
    assert (tmp_path / "p-t.csv").read_text().splitlines()[1] == "'=1+1,0.5"
