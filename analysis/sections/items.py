"""Exhibits of single pairs: the hardest, those that flip, and errors token by token."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.exhibits.exhibit import Cell, Exhibit, existing
from analysis.exhibits.sentences.curves import in_text, plural
from analysis.exhibits.sentences.takeaways import by_curve, from_to
from analysis.exhibits.tables.text import count, signed_text
from analysis.measures.items import (
    PARTS,
    error_sample,
    flipping_pairs,
    hardest_pairs,
    learned_and_lost,
    mean_margins,
    seed_disagreement,
    token_differences,
)
from analysis.study.faulty import known_faults
from analysis.study.judgements import Judgements
from eval.scores.files import TOKENS_FILE, judged_pairs

ERRORS, HARDEST = 2, 2  # pairs of each paradigm
MOST = 12  # paradigms in the table of pairs learned and lost
SEED = 1
FAULT = "known fault"  # a column of tables of pairs, where one of them has a fault


def item_exhibits(judged: Judgements, files: pd.DataFrame, items: pd.DataFrame) -> list[Exhibit]:
    """Return exhibits of single pairs; `files`: of the runs at the largest sizes; `items`: of the benchmark."""
    return existing([
        _disagreement(judged),
        _learned(judged),
        _flipping(judged, items),
        _hardest(judged, files, items),
        _where(files, items),
        _errors(judged, files, items),
    ])  # fmt: skip


def _disagreement(judged: Judgements) -> Exhibit | None:
    rows = seed_disagreement(judged)
    if rows.empty:
        return None
    sizes = rows.groupby("size")["words"].mean().sort_values().index
    wide = rows.pivot_table(index=["level", "name", "group"], columns="size", values="disagreement", sort=False)
    wide = wide.reindex(columns=sizes).reset_index()
    table = pd.DataFrame({"phenomenon": wide["name"], "curve": wide["group"], **{s: wide[s] for s in sizes}})
    about = (
        "Share of pairs that two runs of a size, which differ only in the seed, judge differently; two runs that "
        "guess disagree on half of them."
    )
    takeaways = [
        (str(row["curve"]), f"overall {from_to(row, sizes[0], sizes[-1])}.")
        for _, row in table[wide["level"] == "overall"].iterrows()
    ]
    return Exhibit("disagreement", "Disagreement between seeds", about, table, takeaways=takeaways)


def _learned(judged: Judgements) -> Exhibit | None:
    rows = learned_and_lost(judged)
    if rows.empty:
        return None
    most = rows.assign(changed=rows["learned"] + rows["lost"])
    most = most.sort_values("changed", ascending=False, kind="stable").groupby("group", sort=False).head(MOST)
    most = most.sort_values(["group", "changed"], ascending=[True, False], kind="stable")
    columns = {"group": "curve", "paradigm": "paradigm", "smallest": "from", "largest": "to", "learned": "learned",
               "lost": "lost"}  # fmt: skip
    about = (
        "Share of a paradigm's pairs that most runs judge wrongly at the smallest size and correctly at the largest, "
        f"and the reverse, in the {MOST} paradigms of each curve in which most pairs change."
    )
    table = most[list(columns)].rename(columns=columns)
    takeaways = by_curve(table, _most_learned)
    return Exhibit("learned", "Pairs learned and lost", about, table, takeaways=takeaways)


def _most_learned(rows: pd.DataFrame) -> str:
    row = rows.sort_values("learned", kind="stable").iloc[-1]
    shares = f"{row['learned']:.0%} of its pairs are learned and {row['lost']:.0%} lost"
    return (
        f"the largest share is learned in {in_text(row['paradigm'])}, where {shares} from {row['from']} to {row['to']}"
    )


def _flipping(judged: Judgements, items: pd.DataFrame) -> Exhibit | None:
    flips = flipping_pairs(judged)
    flips = flips[(flips["flips"] > 0) | (flips["split"] > 0)]
    if flips.empty:
        return None
    keys = ["paradigm", "pair_id"]
    flips = flips.merge(items[[*keys, "good", "bad"]], on=keys, how="left")
    sizes = judged.runs.groupby("size")["sample_words"].mean().sort_values().index
    of_sizes = {f"at {size}": [shares.get(size, np.nan) for shares in flips["shares"]] for size in sizes}
    table = pd.DataFrame(
        {"paradigm": flips["paradigm"], "pair": flips["pair_id"], "curve": flips["group"], "good": flips["good"],
         "bad": flips["bad"], "flips": flips["flips"], **of_sizes, "split": flips["split"],
         "phenomenon": flips["phenomenon"], **_faults(judged.label, flips)}
    )  # fmt: skip
    about = (
        "For each paradigm and curve, the pair whose judgement changes most often from one size to the next and, of "
        "these, that on which the runs of a size disagree most."
    )
    definitions = {
        "Flips": "How often the judgement of the majority of runs, where there is one, changes from one size to the "
        "next.",
        "At a size": "Share of its runs that judge the pair correctly.",
        "Split": "0 where the runs of a size agree, 1 where they are halved; mean over sizes.",
    }
    cells: dict[str, Cell] = {"pair": str, "flips": count}
    takeaways = by_curve(table, _often)
    return Exhibit(
        "flips", "Pairs that flip", about, table, cells=cells, definitions=definitions, filtered=True,
        takeaways=takeaways,
    )  # fmt: skip


def _often(rows: pd.DataFrame) -> str:
    times = rows["flips"].max()
    most = int((rows["flips"] == times).sum())
    often = {0: "no judgement changes", 1: "a judgement changes at most once"}
    text = often.get(int(times), f"a judgement changes at most {times:.0f} times")
    return f"{text}, in {plural(most, 'paradigm')}"


def _hardest(judged: Judgements, files: pd.DataFrame, items: pd.DataFrame) -> Exhibit:
    paths = files.loc[files["method"] == files["run"].map(judged.method_of), "path"].tolist()
    hardest = hardest_pairs(judged, mean_margins(paths, judged.pairs), HARDEST)
    hardest = hardest.merge(items[["paradigm", "pair_id", "good", "bad"]], on=["paradigm", "pair_id"], how="left")
    columns = ["paradigm", "pair_id", "good", "bad", "accuracy", "margin", "phenomenon"]
    table = hardest[columns].rename(columns={"pair_id": "pair"}).assign(**_faults(judged.label, hardest))
    cells: dict[str, Cell] = {"pair": str, "margin": signed_text}
    about = (
        "The pairs of each paradigm that the runs at the largest sizes get wrong most often and, of these, by the "
        "widest margin."
    )
    definitions = {
        "Margin": "Score of the good sentence minus that of the bad one, in standard deviations of a run's "
        "differences; mean over runs."
    }
    takeaways = [("", f"{int((table['accuracy'] == 0).sum())} of these {len(table)} pairs are wrong in every run.")]
    if FAULT in table:
        known = int((table[FAULT] != "").sum())
        takeaways.append(("", f"{plural(known, 'pair')} of them {'is' if known == 1 else 'are'} known to be faulty."))
    return Exhibit(
        "hardest", "The hardest pairs", about, table, cells=cells, definitions=definitions, filtered=True,
        takeaways=takeaways,
    )  # fmt: skip


def _faults(label: str, pairs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the column of known faults of pairs (paradigm, pair_id); none where none of them has one."""
    faults = known_faults(label, pairs)
    return {FAULT: faults} if (faults != "").any() else {}


def _one_run(files: pd.DataFrame) -> pd.DataFrame:
    """Return the first run of each group that has tokens."""
    with_tokens = files[files["path"].map(lambda path: (path.parent / TOKENS_FILE).exists())]
    return with_tokens.drop_duplicates("group")


def _where(files: pd.DataFrame, items: pd.DataFrame) -> Exhibit | None:
    rows = []
    phenomena = items.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    for _, one in _one_run(files).iterrows():
        differences = token_differences(one["path"].parent, items)
        mean = differences.groupby(differences["paradigm"].map(phenomena), sort=True)[list(PARTS)].mean()
        rows.append(mean.rename_axis("phenomenon").reset_index().assign(curve=one["group"]))
    if not rows:
        return None
    table = pd.concat(rows, ignore_index=True)[["phenomenon", "curve", "differing", "after"]]
    cells = {"differing": signed_text, "after": signed_text}
    about = (
        "Mean difference between the two sentences' log-probabilities (nats, above 0: the good one is likelier), split "
        "into the words that differ and the words after them, which both share; for pairs with saved tokens, one run "
        "of each curve. What follows can overturn the judgement on the critical words (Warstadt et al. 2020, section "
        "6.4)."
    )
    takeaways = by_curve(table, _favoured)
    return Exhibit("where", "Where in the sentence", about, table, cells=cells, takeaways=takeaways)


def _favoured(rows: pd.DataFrame) -> str:
    differing, after = (int((rows[part] > 0).sum()) for part in ("differing", "after"))
    phenomena = plural(len(rows), "phenomenon")
    return f"the words that differ favour the good sentence in {differing} of {phenomena}, those after them in {after}"


def _errors(judged: Judgements, files: pd.DataFrame, items: pd.DataFrame) -> Exhibit | None:
    rows = []
    judged_items = items[judged_pairs(judged.method, items)]
    phenomena = items.drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    for _, one in _one_run(files).iterrows():
        outcome = judged.outcome[judged.runs.index.get_loc(one["run"])]
        wrong = judged.pairs[outcome < 0.5]
        for entry in error_sample(one["path"].parent, judged_items, wrong, ERRORS, SEED):
            shown = {side: _tokens(entry[side]) for side in ("good", "bad")}
            named = {"paradigm": entry["paradigm"], "pair": entry["pair_id"], "curve": one["group"]}
            rows.append({**named, **shown, "phenomenon": phenomena[entry["paradigm"]]})
    if not rows:
        return None
    table = pd.DataFrame(rows).sort_values(["paradigm", "curve"], kind="stable")
    table = table.assign(**_faults(judged.label, table.rename(columns={"pair": "pair_id"})))
    about = (
        f"Up to {ERRORS} wrongly judged pairs of each paradigm, drawn at random from a fixed seed, one run of each "
        "curve, with the log-probability of each token (nats) behind it; [ ] marks the words that differ."
    )
    takeaways = [("", f"{plural(len(table), 'error')} in {plural(table['paradigm'].nunique(), 'paradigm')}.")]
    return Exhibit(
        "errors", "A sample of errors", about, table, cells={"pair": str}, filtered=True, takeaways=takeaways
    )


def _tokens(tokens: list[dict[str, Any]]) -> str:
    """Format tokens with their log-probabilities: Becca −5.4 [herself −6.7] . −3.0"""
    shown = ""
    for number, token in enumerate(tokens):
        opens = token["differs"] and not (number and tokens[number - 1]["differs"])
        closes = token["differs"] and not (number + 1 < len(tokens) and tokens[number + 1]["differs"])
        text = f"{token['text'].strip()} {token['logprob']:.1f}".replace("-", "\N{MINUS SIGN}")
        shown += (" [" if opens else " ") + text + ("]" if closes else "")
    return shown.strip()
