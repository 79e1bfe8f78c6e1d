"""Schema of the group `filter`: constructions by name, conf/filter/*.yaml."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from corpora.constructions.patterns import Pattern, compile_patterns
from corpora.constructions.rules import Rule, compile_rules
from pairscale.command.schemas import NOT_IN_DIGEST
from pairscale.errors import ConfigError, check_name


@dataclass(kw_only=True)
class FilterConfig:
    """A construction as patterns over dependency trees; a sentence has it if one of them matches."""

    name: str = field(metadata=NOT_IN_DIGEST)  # of the construction: that of its file
    description: str = field(metadata=NOT_IN_DIGEST)  # what it finds, in a line
    source: str | None = field(default=None, metadata=NOT_IN_DIGEST)  # the paper that defines it
    # Lists of nodes in the language of spaCy's DependencyMatcher (corpora/constructions/patterns.py). The first node of
    # each is the word that is counted.
    patterns: list[Any]
    # Such patterns: a match that one of them extends is none. Nodes of the same name are the same word; a pattern is
    # compared with those of `without` whose first node is one of its own.
    without: list[Any] = field(default_factory=list)
    # Paradigms of each benchmark that test the construction: evidence for them is direct, for all others indirect.
    paradigms: dict[str, list[str]] = field(default_factory=dict, metadata=NOT_IN_DIGEST)
    # Of ablate.action=replace: what stands in its place (corpora/constructions/rules.py): a rule for all patterns, or a
    # list of one for each.
    rewrite: Annotated[Any, Meta(description="a rule, or a list of one for each pattern, or null")] = None

    def __post_init__(self) -> None:
        check_name("filter.name", self.name)
        patterns, without = self.compiled()
        if not patterns:
            raise ConfigError(f"filter={self.name}: patterns=[]: must have at least one pattern")
        names = {node.name for pattern in patterns for node in pattern}
        for number, pattern in enumerate(without):
            if pattern[0].name not in names:
                raise ConfigError(
                    f"filter={self.name}: without[{number}], node 0 ({pattern[0].name}): no node of a pattern; must be "
                    f"one of {', '.join(sorted(names))}"
                )
        self.rules()

    def compiled(self) -> tuple[list[Pattern], list[Pattern]]:
        """Return patterns and without, compiled. Raises ConfigError."""
        return (
            compile_patterns(self.patterns, f"filter={self.name}: patterns"),
            compile_patterns(self.without, f"filter={self.name}: without"),
        )

    def rules(self) -> list[Rule | None]:
        """Return the rewriting rule of each pattern, compiled, None where there is none. Raises ConfigError."""
        patterns, _ = self.compiled()
        if self.rewrite is None:
            return [None] * len(patterns)
        return compile_rules(self.rewrite, patterns, f"filter={self.name}: rewrite")
