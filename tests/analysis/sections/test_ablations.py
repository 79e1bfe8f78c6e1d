"""The section on ablations of a simulated study: findings, tables, figures."""

import pandas as pd
import pytest
import yaml

from analysis.config import CurvesConfig
from analysis.curves.ablations.ablations import compare_ablations
from analysis.curves.fit import fit_curves
from analysis.exhibits.figures.style import finished
from analysis.exhibits.sentences.ablations import ablation_findings, ablation_methods
from analysis.measures.ablations import direct_paradigms, removed_text
from analysis.sections.ablations.exhibits import ablations as exhibits_of
from analysis.sections.section import Section
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from tests.support.ablation_study import BOTH, DOSES, FULL, PARADIGMS, Variant, write_ablations
from tests.support.simulated_section import report_of
from train.runs.interventions import KEYS

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)


def section_of(folder, variants=BOTH, **simulated):
    """Return the section of a simulated study with interventions, filled as `python -m analysis` does."""
    write_ablations(folder, variants, **simulated)
    study = collect(folder, "ablations")
    judged = judgements(study, "blimp", "lp", "wrong")
    direct = direct_paradigms(judged.runs, study.config, "blimp")
    section = Section(judged, fit_curves(judged, CONFIG), pd.DataFrame())
    section.ablations = compare_ablations(judged, direct, CONFIG)
    assert section.ablations is not None
    section.effects = ablation_findings(section.ablations, CONFIG)
    return section


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return section_of(tmp_path_factory.mktemp("runs"), tuple(dict.fromkeys((*BOTH, *DOSES))))


def exhibits(section):
    return {of.name: of for of in exhibits_of(section, report_of(section)) if of is not None}


@pytest.mark.slow
def test_runs_have_their_interventions(both):
    runs = both.judged.runs.drop_duplicates("group").set_index("group")[["filter", "action", "dose", "base"]]
    assert runs.loc["llama_tiny, full text"].tolist() == ["", "none", "1", "llama_tiny"]
    assert runs.loc["llama_tiny, first 1/8 kept"].tolist() == ["first", "remove", "1/8", "llama_tiny"]
    assert runs.loc["llama_tiny, control of second"].tolist() == ["second", "control", "0", "llama_tiny"]


def test_findings_say_no_more_than_their_interval(both):
    texts = {finding.subject: finding.full for finding in both.effects}
    assert "in the one paradigm that tests the construction, accuracy is lower by" in texts["llama_tiny, first removed"]
    assert "against the matched control (9 pairs of runs, 3 sizes)" in texts["llama_tiny, first removed"]
    second = texts["llama_tiny, second removed"]
    assert "in the 2 paradigms that test the construction, no change that 9 pairs of runs can show" in second
    assert "it has no matched control" in texts["llama_tiny, first 1/8 kept"]
    assert texts["llama_tiny, control of first"].startswith(
        "against the full text (9 pairs of runs, 3 sizes): overall,"
    )


def test_exhibits_have_tables_and_figures(both, tmp_path):
    of = exhibits(both)
    assert list(of) == ["ablations", "ablation-paradigms", "surviving-shares", "doses", "removed-text"]
    assert [len(exhibit.charts) for exhibit in of.values()] == [4, 4, 0, 1, 0]
    for exhibit in of.values():
        exhibit.rows()
        for draw in exhibit.charts.values():
            assert finished(draw())["$schema"]
        assert exhibit.table is not None
    direct = of["ablation-paradigms"].table
    assert set(direct.loc[direct["direct"], "paradigm"]) == {*PARADIGMS["first"], *PARADIGMS["second"]}
    assert "accuracy rises with the dose" in of["doses"].takeaways[0][1]
    of["removed-text"].write(tmp_path)
    assert len(pd.read_csv(tmp_path / "removed-text.csv")) == 6


def test_methods_name_pairs_margin_and_corrections(both):
    (text,) = ablation_methods(both.ablations, CONFIG)
    for words in ("pairs of runs of one size and seed", "Holm", "margin of .02", "Fieller"):
        assert words in text


def test_manifests_say_what_was_removed(both):
    table = removed_text(both.judged.runs).set_index(["filter", "action", "dose"])
    assert table.loc[("first", "control", "0"), "same_class"] == 0.99
    assert table.loc[("first", "remove", "0"), ["sentences", "of_sentences", "runs"]].tolist() == [1000, 20_000, 9]
    assert removed_text(both.judged.runs.assign(manifest=[{}] * len(both.judged.runs))).empty


def test_one_run_of_each_gives_differences_without_claims(tmp_path):
    section = section_of(tmp_path, BOTH[:3], sizes=("125k",), seeds=(1,))
    assert all("without an interval" in finding.text for finding in section.effects)
    assert set(exhibits(section)) == {"ablations", "ablation-paradigms", "surviving-shares", "removed-text"}


def test_without_the_full_text_there_is_the_control_alone(tmp_path):
    section = section_of(tmp_path, BOTH[1:3], sizes=("125k", "250k"), seeds=(1, 2, 3))
    assert [finding.subject for finding in section.effects] == ["llama_tiny, first removed"]


def test_other_actions_are_compared_with_the_full_text(tmp_path):
    replaced = Variant("first", "replace")
    section = section_of(tmp_path, (FULL, replaced), sizes=("125k",), seeds=(1, 2, 3))
    assert section.effects[0].subject == "llama_tiny, first replaced"
    assert "against the full text (3 pairs of runs, 1 size; it has no matched control)" in section.effects[0].text


def test_runs_from_before_ablations_have_none(tmp_path):
    for folder in write_ablations(tmp_path, (FULL,), sizes=("125k",)):
        config = yaml.safe_load(folder.config.read_text())
        folder.config.write_text(yaml.safe_dump({key: of for key, of in config.items() if key not in KEYS}))
    judged = judgements(collect(tmp_path, "ablations"), "blimp", "lp", "wrong")
    assert set(judged.runs["group"]) == {"llama_tiny"}
    assert compare_ablations(judged, {}, CONFIG) is None
