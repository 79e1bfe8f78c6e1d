"""Names of benchmarks for readers."""

import pytest

from eval.benchmarks.config import BenchmarkConfig
from eval.config import score_label
from eval.scores.names import benchmark_name
from pairscale.command.compose import compose


def test_a_part_that_a_plug_in_adds_stays_as_it_is():
    assert benchmark_name("slashes+depth-3") == "slashes, depth-3"
    assert BenchmarkConfig(name="mine").label == benchmark_name("mine")


@pytest.mark.parametrize(
    ("overrides", "name", "in_full"),
    [
        (["benchmark=blimp", "benchmark.pairs=10"], "BLiMP", "BLiMP, 10 pairs per paradigm"),
        (["benchmark=toy"], "Toy English", "Toy English, seed 1, 200 pairs per paradigm"),
        (["benchmark=generated", "benchmark.vocabulary=study"],
         "Generated pairs, English, words of all samples at least 5 times", None),
        (["benchmark=multiblimp", "benchmark.subset=eng"], "MultiBLiMP, eng", None),
        (["benchmark=blimp", "policy.context=eos", "policy.unk=skip", "policy.score_eos=true"],
         "BLiMP, after 32 <eos>, sentence end scored, unknown words skipped", None),
        (["benchmark=neg"], "NEG-136", None),
        (["benchmark=local", "benchmark.name=my_pairs", "benchmark.path=x.csv"], "my_pairs", None),
    ],
)  # fmt: skip
def test_a_name_is_made_from_the_configuration_of_a_benchmark(overrides, name, in_full):
    config = compose("eval", overrides)
    label = score_label(config.benchmark, config.policy)
    assert (benchmark_name(label), benchmark_name(label, routine=True)) == (name, in_full or name)
