"""Write the run folders of a simulated study with interventions, for tests of the analysis."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.simulated_study import SimulatedStudy, rewrite_config
from train.runs.folder import RunFolder

MODEL = "llama_tiny"
PARADIGMS = {"first": ["anaphor_agreement_1"], "second": ["island_effects_1", "island_effects_2"]}
PHENOMENA = {"anaphor_agreement": (2, 0.7, 0.03), "island_effects": (3, 0.65, 0.02), "npi_licensing": (1, 0.6, 0.02)}


@dataclass(frozen=True)
class Variant:
    """An intervention of a study, and how much it lowers the accuracy in the first phenomenon."""

    filter: str = ""
    action: str = "none"
    dose: str = "0"
    loss: float = 0.0

    def config(self) -> dict[str, Any]:
        ablate = {"action": self.action, "dose": self.dose, "layer": None, "seed": None, "listing": None}
        if not self.filter:
            return {"filter": None, "ablate": ablate}
        patterns = [[{"RIGHT_ID": self.filter, "RIGHT_ATTRS": {}}]]
        described = {"name": self.filter, "description": f"all of {self.filter}", "patterns": patterns, "without": []}
        return {
            "ablate": ablate,
            "filter": described | {"paradigms": {"blimp": PARADIGMS[self.filter]}, "rewrite": None},
        }

    def manifest(self) -> dict[str, Any]:
        balance = {"same_class": 0.99, "removed": {"words": 30.2, "log_frequency": 8.5},
                   "control": {"words": 30.1, "log_frequency": 8.6}}  # fmt: skip
        return {
            "filter": self.filter, "action": self.action, "dose": self.dose, "layer": "spacy", "digest": "ab" * 32,
            "sentences": 1000, "words": 30_000, "of_sentences": 20_000, "of_words": 400_000,
            "matching": {"sentences": 1000, "words": 30_000}, "rewritten": 0,
            "balance": balance if self.action == "control" else {},
            "sample": {"sentences": 50, "words": 1500, "matching": 0, "rewritten": 0},
        }  # fmt: skip


FULL = Variant()
BOTH = (
    FULL,
    Variant("first", "remove", loss=0.15), Variant("first", "control"),
    Variant("second", "remove"), Variant("second", "control"),
)  # fmt: skip


def write_ablations(
    runs: Path,
    variants: tuple[Variant, ...] = BOTH,
    sizes: tuple[str, ...] = ("125k", "250k", "500k"),
    seeds: tuple[int, ...] = (1, 2, 3),
    pairs: int = 20,
    name: str = "ablations",
    benchmark: str = "blimp",
) -> list[RunFolder]:
    """Write a study with one run per variant, size and seed, and return its run folders."""
    folders = []
    for number, variant in enumerate(variants):
        phenomena = dict(PHENOMENA)
        paradigms, start, gain = phenomena["anaphor_agreement"]
        phenomena["anaphor_agreement"] = (paradigms, start - variant.loss, gain)
        study = SimulatedStudy(
            (MODEL,), sizes, seeds, phenomena, pairs, name=f"{name}-{number}", benchmark=benchmark, overlap=0.03
        )
        for folder in study.write(runs, seed=number):
            target = runs / name / f"{folder.path.name}-{variant.filter or 'full'}-{variant.action}-{number}"
            target.parent.mkdir(exist_ok=True)
            moved = RunFolder(folder.path.rename(target))
            rewrite_config(moved, study=name, **variant.config())
            manifest = moved.read_manifest()
            corpus = manifest["corpus"] | ({"ablation": variant.manifest()} if variant.filter else {})
            sample = corpus["sample"] | {"digest": f"{number:02x}{corpus['sample']['digest'][2:]}"}
            moved.update_manifest(corpus=corpus | {"sample": sample})
            folders.append(moved)
        (runs / study.name).rmdir()
    return folders
