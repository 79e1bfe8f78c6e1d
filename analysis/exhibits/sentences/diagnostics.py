"""Sentences on a diagnostic: extent, warnings and methods, computed from its tables."""

from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.curves import joined, plural
from analysis.measures.diagnostics import CONSTRAINTS, Diagnosed

_ASKS = {
    "cprag": "CPRAG-102 asks for the last noun of the second of two sentences, which people infer from the first",
    "role": "ROLE-88 asks for the verb that fits who did what to whom, which word order alone shows",
    "neg": "NEG-136 asks if a model heeds a negation",
}


def extent(answers: Diagnosed) -> str:
    """Describe the question of the diagnostic, and the runs."""
    placed = answers.runs[answers.runs["sample_words"].notna()]
    beside = len(answers.runs) - len(placed)
    parts = [sentences.extent(placed)] if len(placed) else []
    parts += [f"{plural(beside, 'pretrained model')} trained on text of unknown size"] if beside else []
    asks = _ASKS.get(answers.benchmark)
    about = f"{asks} (Ettinger 2020)" if asks else f"{answers.benchmark} has no published results to compare with"
    return f"{about}. {'; '.join(parts)}."


def warnings(answers: Diagnosed) -> list[str]:
    """Return the warnings on the tables."""
    texts = [*sentences.left_out(answers.problems, "tables"), *answers.notes]
    missing = answers.inexpressible[answers.inexpressible["words"] > 0]
    for group, words, items in missing[["group", "words", "items"]].itertuples(index=False, name=None):
        texts.append(
            f"{group} cannot express {plural(words, 'word')} of {plural(items, 'item')} (at its largest size); they "
            "count as wrong, and the table of all measures has the shares without them."
        )
    return texts


def methods(answers: Diagnosed) -> list[str]:
    """Return the methods paragraph, for a paper."""
    rows = answers.measured[
        (answers.measured["run"] == answers.runs.index[0]) & (answers.measured["level"] == "sensitivity")
    ]
    parts = ~rows["name"].isin(CONSTRAINTS.values()) & ~rows["name"].str.endswith(" both")  # which are parts of others
    items = int(rows.loc[parts, "items"].sum())
    masked = [group for group, policy in answers.policies.items() if policy.get("pll")]
    others = [group for group in answers.policies if group not in masked]
    text = []
    if others:
        text.append(
            f"{joined(others)}: the probability of a word after the begin symbol and the context is that of all of its "
            "tokens, left to right."
        )
    if masked:
        fill = {answers.policies[group]["pll"] for group in masked}
        how = {"within_word_l2r": "filled in from the left", "original": "each hidden alone"}
        text.append(
            f"{joined(masked)}: a mask in the place of the word, and a full stop after it (Ettinger 2020, section 6); "
            f"a word of several tokens has as many masks, {joined([how[name] for name in sorted(fill)])}."
        )
    before = {policy.get("context", "none") for policy in answers.policies.values()}
    if before != {"none"}:
        text.append(f"Before each context: {joined(sorted(before))}.")
    text.append(
        "Ranks and most probable words are over whole words: tokens that begin a word and are not punctuation. A tie "
        f"is no preference. Items are few ({items} comparisons for the sensitivities), so intervals over new items are "
        "wide whatever the runs; those over runs say nothing about other items. No curve is fitted over sizes."
    )
    return text
