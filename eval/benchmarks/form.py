"""Define the forms of benchmarks, which are functions that turn files into tables of pairs (load.py).

    @form("mine", fields=("path",))
    def read(config: BenchmarkConfig) -> Iterable[Table]: ...

Forms are registered here or in plug-ins. `benchmark.form` chooses one by its name. Most files of pairs don't need a new
form, because the form `pairs` can read them if a YAML file names their columns.
"""

from collections.abc import Iterator

from eval.benchmarks.config import OF_FILES, BenchmarkConfig, form
from eval.benchmarks.files import Generated, Row, Table, file_rows, local_files, tables
from pairscale.errors import ConfigError

__all__ = ["Row", "Table", "form"]

form("pairs", (*OF_FILES, "columns", "labels", "rename", "separator", "exclude"))(tables)


@form("climp", ("path", "files", "columns"))
def climp(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield CLiMP's files. The file of ba_construction only contains sentences, which are good and bad in turn."""
    for file in local_files(config):
        rows = file_rows(file, header=not (bare := file.name.startswith("ba_construction")))
        if bare:
            named = {"0": "ba", "1": "ba_construction"}
            sentences = ((where, cells["0"]) for where, cells in rows)
            rows = (Row(at, named | {"2": text, "3": "10"[n % 2]}) for n, (at, text) in enumerate(sentences))
        yield Table(file.stem, str(file), rows)


# The modules of grammars are imported where they are needed, so that commands start faster.


@form("toy", ("seed", "per_paradigm", "rename"))
def toy(config: BenchmarkConfig) -> Iterator[Table]:
    """Generate `per_paradigm` pairs for each paradigm of the toy language, drawn with `seed`."""
    from eval.benchmarks.toy import pairs

    if config.seed is None or config.per_paradigm is None:
        raise ConfigError("benchmark=toy: benchmark.seed and benchmark.per_paradigm must be numbers.")
    yield Table("toy", "toy", (Row("toy", pair) for pair in pairs(config.seed, config.per_paradigm)))


@form("generated", ("seed", "vocabulary", "min_count"))
def generated(config: BenchmarkConfig) -> Generated:
    """Generate the pairs of a language's paradigms, with the words of a vocabulary if there is one."""
    from eval.benchmarks.generated import generate

    return generate(config)
