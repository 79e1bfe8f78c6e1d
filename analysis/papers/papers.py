"""The papers reproduced from their published accuracies: exhibits, and statements checked against them."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.accuracies import matrix_chart
from analysis.exhibits.figures.curves import perplexity_chart
from analysis.exhibits.figures.style import Chart, Frame
from analysis.exhibits.tables.text import count, decimal_text, slope_text
from analysis.measures.accuracies import ADJECTIVE, ATTRACTOR, PEOPLE, REGULARITY, phenomenon_table
from analysis.papers.exhibits import (
    conditions_exhibit,
    correlation_exhibit,
    model_table,
    paradigms_exhibit,
    people_exhibit,
    sizes_exhibit,
    units_exhibit,
)
from analysis.papers.statements import (
    blimp_measures,
    check,
    check_printed,
    climp_measures,
    climp_models,
    methods_measures,
)
from analysis.papers.syntaxgym import syntaxgym_exhibits, syntaxgym_measures
from analysis.published import published_file
from eval.published import OVERALL, read_published

_SENTENCES = ("0.4M", "2M", "21.5M")  # sizes of Xiang et al. 2021, in sentences
_TITLES = {"blimp": "BLiMP", "climp": "CLiMP"}
_DIAGNOSTICS = {"cprag": "CPRAG-102", "role": "ROLE-88", "neg": "NEG-136"}
# Warstadt et al. 2020, figures 3 and 4: name, heading, text and panels.
_FIGURES = [
    (
        "blimp-figure3-adjective",
        "Figure 3, above: agreement across an adjective",
        "Determiner-noun agreement without and with an adjective between the two, means over four paradigms each "
        "(numbered 1 and 2, regular and irregular); loss: how far the second lies below the first. The paper does not "
        "name its paradigms: these were chosen because the losses that it states follow from them.",
        ADJECTIVE,
    ),
    (
        "blimp-figure3-attractor",
        "Figure 3, below: agreement across an attractor",
        "Subject-verb agreement with no attractor (regular_plural_subject_verb_agreement_1), with one as a relational "
        "noun, and with one in a relative clause; loss: how far the mean of the last two lies below the first. The "
        "paper does not name its paradigms: this one was chosen, as of all choices among the four without an attractor "
        "it alone gives the losses that are stated of the LSTM and of Transformer-XL.",
        ATTRACTOR,
    ),
    (
        "blimp-figure4",
        "Figure 4: regular against irregular",
        "Nouns with a regular and with an irregular plural: means over four paradigms of determiner-noun agreement "
        "each, and over two of subject-verb agreement each.",
        REGULARITY,
    ),
]


@dataclass
class Paper:
    """The reproduction of one paper; `checks` has the columns of statements.COLUMNS."""

    name: str
    short: str
    citation: str
    exhibits: list[Exhibit]
    checks: pd.DataFrame


def reproduce() -> list[Paper]:
    """Reproduce the papers from their published numbers."""
    blimp, climp = (_people_last(read_published(name)) for name in ("blimp", "climp"))
    methods = published_file("acceptability_methods")
    measures = blimp_measures(blimp)
    checks = pd.concat([check("blimp", measures), check_printed("blimp", blimp)], ignore_index=True)
    return [
        Paper(
            "blimp",
            "BLiMP",
            "Warstadt, Parrish, Liu, Mohananey, Peng, Wang and Bowman 2020, BLiMP: The Benchmark of Linguistic Minimal "
            "Pairs for English, TACL 8; accuracies per paradigm from the data set's repository.",
            _blimp(blimp),
            checks,
        ),
        Paper(
            "climp",
            "CLiMP",
            "Xiang, Yang, Li, Warstadt and Kann 2021, CLiMP: A Benchmark for Chinese Language Model Evaluation, EACL.",
            _climp(climp),
            check("climp", climp_measures(climp, measures[f"{OVERALL} {PEOPLE}"])),
        ),
        Paper(
            "methods",
            "Judgement methods",
            "Ide, Nishida, Oba, Sakai, Vasselli, Kamigaito and Watanabe, How to Make the Most of LLMs' Grammatical "
            "Knowledge for Acceptability Judgments. Methods have our names.",
            _methods(methods),
            check("methods", methods_measures(methods, measures)),
        ),
        Paper(
            "diagnostics",
            "Diagnostics",
            "Ettinger 2020, What BERT Is Not: Lessons from a New Suite of Psycholinguistic Diagnostics for Language "
            "Models, TACL 8.",
            [_diagnostic(benchmark, named) for benchmark, named in _DIAGNOSTICS.items()],
            check("diagnostics", {}),
        ),
        Paper(
            "syntaxgym",
            "SyntaxGym",
            "Hu, Gauthier, Qian, Wilcox and Levy 2020, A Systematic Assessment of Syntactic Generalization in Neural "
            "Language Models, ACL; per-item results from the authors' repository.",
            syntaxgym_exhibits(),
            check("syntaxgym", syntaxgym_measures()),
        ),
    ]


def _people_last(accuracies: pd.DataFrame) -> pd.DataFrame:
    return accuracies.sort_values("model", key=lambda column: column == PEOPLE, kind="stable", ignore_index=True)


def _blimp(accuracies: pd.DataFrame) -> list[Exhibit]:
    figures = [
        conditions_exhibit(name, heading, about, accuracies, panels) for name, heading, about, panels in _FIGURES
    ]
    return [
        Exhibit(
            "blimp-table3",
            "Table 3: phenomena",
            "Accuracy by phenomenon, means over its paradigms; overall the mean over all 67. People are single persons "
            "who chose one of two sentences.",
            phenomenon_table(accuracies),
        ),
        people_exhibit(accuracies),
        correlation_exhibit(
            "blimp-figure1",
            "Figure 1: who finds the same paradigms hard",
            "Pearson's correlation of accuracies over the 67 paradigms.",
            accuracies,
        ),
        *(figure for figure in figures if figure is not None),
        paradigms_exhibit(
            "blimp-table4",
            "Table 4: paradigms",
            "Accuracy on each of the 67 paradigms, and which of them the prefix methods can judge.",
            accuracies,
            published_file("blimp_paradigms"),
        ),
        _slopes(),
        _perplexity(),
    ]


def _slopes() -> Exhibit:
    rows = published_file("slopes")
    order = list(dict.fromkeys(rows["phenomenon"]))
    table = rows.pivot(index="phenomenon", columns="model", values="slope").loc[order].rename_axis(None, axis=1)
    about = (
        "Section 6.3: accuracy gained per doubling of the text, from 1/8M to 64M words, five samples at each size. "
        "Only the steepest and the shallowest are published, and not the accuracies that they were fitted to."
    )
    cells = dict.fromkeys(table.columns, slope_text)
    return Exhibit("blimp-slopes", "Slopes of learning curves", about, table.reset_index(), cells=cells)


def _perplexity() -> Exhibit:
    rows = published_file("perplexity")
    x, y = np.log2(rows["words"].to_numpy(dtype=float)), np.log2(rows["perplexity"].to_numpy(dtype=float))
    factor = float(2 ** np.polyfit(x, y, 1)[0])
    about = (
        "Note 16: average perplexity on the test text at four sizes of the text that was trained on. By a line through "
        f"them, each doubling multiplies it by {factor:.3f}."
    )
    runs = rows[["words", "perplexity"]].set_axis(["sample_words", "valid_ppl"], axis=1)
    group = "Warstadt et al. 2020, average"
    runs = runs.assign(group=group, size=rows["words"].map(str), seed="", valid_oov_rate=np.nan)
    charts = {"perplexity": partial(perplexity_chart, runs.rename_axis("run"))}
    cells = {"words": count, "perplexity": decimal_text}
    table = rows[["words", "perplexity"]]
    return Exhibit("blimp-perplexity", "Perplexity against text", about, table, cells=cells, charts=charts)


def _climp(accuracies: pd.DataFrame) -> list[Exhibit]:
    whole = accuracies[accuracies["level"] == OVERALL].set_index("model")["accuracy"]
    known = climp_models(list(whole.index))
    rows = known.assign(accuracy=whole.reindex(known["model"]).to_numpy()).drop(columns="model")
    compared = [
        units_exhibit(
            "climp-units",
            "Words against characters",
            "Overall accuracy of the same architecture on the same text, split into words and into characters; gain: "
            "of characters over words. Sizes are numbers of sentences.",
            rows,
        ),
        sizes_exhibit(
            "climp-sizes",
            "More text",
            "Overall accuracy of the same architecture by the number of sentences that it was trained on.",
            rows,
            _SENTENCES,
        ),
    ]
    table = Exhibit(
        "climp-table2",
        "Table 2: models and phenomena",
        "Accuracy by phenomenon; overall the mean over 16 paradigms, not over nine phenomena. The table prints LSTM-2M "
        "twice: the second pair of rows is LSTM-0.4M.",
        model_table(accuracies).rename(columns=lambda name: name.replace("_", " ")),
    )
    return [table, *(exhibit for exhibit in compared if exhibit is not None)]


def _methods(rows: pd.DataFrame) -> list[Exhibit]:
    votes = rows["method"].str.startswith("vote_")
    single = {str(measure): of for measure, of in rows[~votes].groupby("measure", sort=False)}
    return [
        _by_model(
            "methods-table3",
            "Table 3: methods and models",
            "Accuracy by method and model, means over five templates where there are templates.",
            single["accuracy"],
        ),
        _by_model(
            "methods-deviation",
            "Table 3: deviation over templates",
            "Standard deviation of the accuracies of the five templates.",
            single["sd"],
        ),
        _by_model("methods-table9", "Table 9: best template", "The highest accuracy of a template.", single["best"]),
        _by_model(
            "methods-table5",
            "Table 5: ensembles",
            "Majority votes of five predictions: of yes_no alone (vote_p), of both methods (vote_mix_p3: three of "
            "yes_no; vote_mix_l3: three of in_template_lp), and of in_template_lp alone (vote_l).",
            rows[votes],
        ),
        _by_model(
            "methods-table10",
            "Table 10: share of A answers",
            "How often ab_prompt answers A, where A is right half of the time.",
            single["share of A"],
        ),
        _lengths(single["correlation"]),
    ]


def _by_model(name: str, heading: str, about: str, rows: pd.DataFrame) -> Exhibit:
    """Return one measure: a row per method, a column per benchmark and model; accuracies are drawn too."""
    named = rows.assign(of=rows["benchmark"].map({"blimp": "", "climp": "CLiMP "}) + rows["model"])
    order, columns = list(dict.fromkeys(named["method"])), list(dict.fromkeys(named["of"]))
    table = named.pivot(index="method", columns="of", values="value").loc[order, columns]
    shown = table.rename_axis(None, axis=1).reset_index()

    def draw(benchmark: str, frame: Frame) -> Chart:
        part = named[named["benchmark"] == benchmark]
        chart = matrix_chart(part, "method", "model", "value", domain=(0.5, 1.0), frame=frame, legend="accuracy")
        return chart.properties(title=_TITLES[benchmark])

    drawn = _TITLES if (rows["measure"] == "accuracy").all() else {}
    return Exhibit(name, heading, about, shown, charts={benchmark: partial(draw, benchmark) for benchmark in drawn})


def _lengths(rows: pd.DataFrame) -> Exhibit:
    order = list(dict.fromkeys(rows["method"]))
    table = rows.pivot(index="method", columns="benchmark", values="value").loc[order].rename_axis(None, axis=1)
    shown = table.rename(columns=_TITLES).reset_index()
    about = (
        "Point-biserial correlation of being right with how many tokens the good sentence is longer than the bad one, "
        "averaged over models."
    )
    return Exhibit("methods-table4", "Table 4: bias by token length", about, shown)


def _diagnostic(benchmark: str, named: str) -> Exhibit:
    rows = read_published(benchmark, ("level", "name", "model", "accuracy", "sd", "source"))
    models = list(dict.fromkeys(rows["model"]))
    keys = rows[["level", "name"]].drop_duplicates()
    table = keys.merge(rows.pivot(index=["level", "name"], columns="model", values="accuracy").reset_index())
    places = rows.groupby(["level", "name"])["source"].first().reset_index()
    shown = table.merge(places)[["level", "name", *models, "source"]]
    shown = shown.rename(columns={"level": "measure", "name": "condition"}).rename_axis(None, axis=1)
    about = "Accuracies (the expected word among the first one or five) and sensitivities, as eval's tables name them."
    return Exhibit(f"diagnostics-{benchmark}", named, about, shown)
