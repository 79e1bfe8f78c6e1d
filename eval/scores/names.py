"""Turn the names of score folders (eval.config.score_label) into readable benchmark names, such as "Toy English"."""

import re
from collections.abc import Callable

_TITLES = {
    "babylm_blimp": "BLiMP (BabyLM)",
    "blimp": "BLiMP",
    "blimp_nl": "BLiMP-NL",
    "blimp_supplement": "BLiMP supplement",
    "climp": "CLiMP",
    "comps": "COMPS",
    "cprag": "CPRAG-102",
    "entity_tracking": "Entity tracking",
    "ewok": "EWoK",
    "generated": "Generated pairs",
    "global_piqa_nonparallel": "Global PIQA (nonparallel)",
    "global_piqa_parallel": "Global PIQA (parallel)",
    "hanzi": "Hanzi",
    "jblimp": "JBLiMP",
    "minimal_pairs": "minimal pairs",
    "mubench": "MuBench",
    "multiblimp": "MultiBLiMP",
    "neg": "NEG-136",
    "ratings": "Ratings",
    "role": "ROLE-88",
    "rublimp": "RuBLiMP",
    "sling": "SLING",
    "syntaxgym": "SyntaxGym",
    "toy": "Toy English",
    "turblimp": "TurBLiMP",
    "xcomps": "XCOMPS",
    "zhoblimp": "ZhoBLiMP",
}
_ROUTINE = ("seed-", "per_paradigm-", "pairs-")  # parts that are usually left out, to keep names short
_PARTS: dict[str, str | Callable[[re.Match[str]], str]] = {
    "en": "English",
    "zh": "Mandarin",
    r"subset-(.+)": r"\1",
    r"words-(.+?)(?:-k(\d+))?": lambda match: f"words of {match[1]}" + _minimum_count(match[2]),
    r"run-k(\d+)": lambda match: "words of each run's sample" + _minimum_count(match[1]),
    r"study-k(\d+)": lambda match: "words of all samples" + _minimum_count(match[1]),
    r"seed-(\d+)": r"seed \1",
    r"per_paradigm-(\d+)": r"\1 pairs per paradigm",
    r"pairs-None": "all pairs",
    r"pairs-(\d+)": r"\1 pairs per paradigm",
    r"paradigms-(\w+)": r"chosen paradigms (\1)",
    r"suites-(\w+)": r"chosen suites (\1)",
    r"context-eos-(\d+)": r"after \1 <eos>",
    r"context-text-(\w+)": r"after a text (\1)",
    r"score_eos-(true|false)": lambda match: "sentence end" + (" scored" if match[1] == "true" else " not scored"),
    r"unk-skip": "unknown words skipped",
    r"precision-(\w+)": r"\1",
    r"pll-original": "PLL original",
    r"pll-within_word_l2r": "PLL within words",
    r"pll_shift-(\d)": r"PLL shift \1",
    r"quote_marks-(\w+)": r"\1 quotation marks",
    r"shuffles-(\d+)": r"\1 shuffles",
}


def benchmark_name(label: str, routine: bool = False) -> str:
    """Return a readable benchmark name, such as "BLiMP, unknown words skipped" for "blimp+unk-skip".

    If `routine` is true, include seeds and numbers of pairs. Unknown names and parts are left unchanged.
    """
    name, *parts = label.split("+")
    chosen = [part for part in parts if routine or not part.startswith(_ROUTINE)]
    return ", ".join([_TITLES.get(name, name), *map(_readable, chosen)])


def _readable(part: str) -> str:
    for pattern, text in _PARTS.items():
        if match := re.fullmatch(pattern, part):
            return text(match) if callable(text) else match.expand(text)
    return part


def _minimum_count(times: str | None) -> str:
    return f" at least {times} times" if times else ""
