"""The kinds of items that models are scored on, by the type of their benchmark's configuration."""

from eval.benchmarks.config import BenchmarkConfig
from eval.diagnostics.config import DiagnosticConfig
from eval.kinds.cloze import ClozeWork
from eval.kinds.pairs import PairsWork
from eval.kinds.ratings import RatingsWork
from eval.kinds.suites import SuitesWork
from eval.kinds.work import Work
from eval.ratings.config import RatingsConfig
from eval.syntaxgym.config import SyntaxGymConfig

KINDS: dict[type[BenchmarkConfig], type[Work]] = {
    BenchmarkConfig: PairsWork,
    DiagnosticConfig: ClozeWork,
    RatingsConfig: RatingsWork,
    SyntaxGymConfig: SuitesWork,
}
