"""What a run's configuration says about the construction that its training text lacks. Imports no pandas."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corpora.ablation.config import CONTROL, KEEP_ONLY, NONE, REMOVE, REPLACE
from pairscale.files import sha256_json

FULL_DOSE = "1"  # all sentences of the construction: the text as it is
KEYS = ("filter", "ablate")  # of a configuration
FULL_TEXT = "full text"  # what runs without an intervention are called beside others
_DEFINITION = ("patterns", "without")  # keys of a filter that say what it searches for
_ACTIONS = {REMOVE: "{} removed", KEEP_ONLY: "only {}", REPLACE: "{} replaced", CONTROL: "matched control for {}"}


@dataclass(frozen=True)
class Intervention:
    """An intervention in a run's training text; the full text has the filter "", the action none and the dose 1.

    dose: the share of the construction's sentences that stay, a fraction. definition: digest of what the filter
    searches for. settings: the layer and the seed of its sentences and the digest of its rewriting rules, each with its
    key, "null" for the default and for rules that are not used.
    """

    filter: str = ""
    action: str = NONE
    dose: str = FULL_DOSE
    definition: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def acts(self) -> bool:
        return self.action != NONE

    def name(self, construction: str) -> str:
        """Return "npi removed", "matched control for npi", "npi 1/8 kept"; `construction`: see `constructions`."""
        if not self.acts:
            return FULL_TEXT
        if self.dose == "0" or self.action == KEEP_ONLY:
            return _ACTIONS[self.action].format(construction)
        dosed = construction if self.action == REMOVE else _ACTIONS[self.action].format(construction)
        return f"{dosed} {self.dose} kept"


def intervention_of(config: Mapping[str, Any]) -> Intervention:
    """Return the intervention of a resolved configuration; one without these keys, as of older runs, has none."""
    ablate, of = (config.get("ablate") or {}), (config.get("filter") or {})
    action, dose = ablate.get("action", NONE), str(ablate.get("dose", "0"))
    if action == NONE or dose == FULL_DOSE or not of:
        return Intervention()
    settings = {f"ablate.{key}": "null" if ablate.get(key) is None else str(ablate[key]) for key in ("layer", "seed")}
    settings["filter.rewrite"] = sha256_json(of.get("rewrite"))[:8] if action == REPLACE else "null"
    definition = sha256_json([of.get(key) or None for key in _DEFINITION])[:8]
    return Intervention(str(of.get("name")), action, dose, definition, tuple(settings.items()))


def constructions(interventions: Mapping[str, Intervention]) -> tuple[dict[str, str], list[str]]:
    """Return the filter of each run's intervention, by run id, and notes; "" for the full text.

    Filters of one name that search for different things have their digests behind their names.
    """
    definitions = defaultdict(set)
    for of in interventions.values():
        definitions[of.filter].add(of.definition)
    several = {name: sorted(digests) for name, digests in definitions.items() if len(digests) > 1}
    names = {
        run: f"{of.filter} ({of.definition})" if of.filter in several else of.filter
        for run, of in interventions.items()
    }
    return names, [
        f"{len(digests)} filters called {name} search for different things (digests {', '.join(digests)}): they are "
        "not compared."
        for name, digests in several.items()
    ]


def intervention_names(interventions: Mapping[str, Intervention]) -> tuple[dict[str, str], list[str]]:
    """Return the name of each run's intervention, by run id, and notes; "" for all runs if none acts.

    Interventions of one name have the layers, seeds and rules that differ in their names.
    """
    of_filters, notes = constructions(interventions)
    names = {run: of.name(of_filters[run]) for run, of in interventions.items()}
    settings = defaultdict(set)
    for run, of in interventions.items():
        settings[names[run]].add(of.settings)
    if not any(of.acts for of in interventions.values()):
        return dict.fromkeys(interventions, ""), notes
    for run, of in interventions.items():
        others = settings[of.name(of_filters[run])]
        differing = [
            f"{key}={value}"
            for place, (key, value) in enumerate(of.settings)
            if len({other[place] for other in others}) > 1
        ]
        names[run] = ", ".join([names[run], *differing])
    return names, notes
