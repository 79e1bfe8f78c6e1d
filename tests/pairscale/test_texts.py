"""Keys whose type is text keep what was typed."""

import subprocess
import sys

import pytest
import yaml
from omegaconf.errors import OmegaConfBaseException

from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.command.sweeps import axes_of
from pairscale.errors import ConfigError
from tests.support import ROOT

TYPED = ["1.10", "1e3", "1_000", "true", "NaN", "007", "0x10", "2024-01-01"]


@pytest.mark.parametrize("typed", TYPED)
def test_text_keys_keep_what_was_typed(typed):
    config = compose(
        "eval",
        [
            "corpus=toy", "model=hf_causal", "benchmark=local", f"study={typed}", f"run={typed}", f"paths.runs={typed}",
            f"model.path={typed}", f"model.revision={typed}", f"benchmark.path={typed}", f"benchmark.files=[{typed},a]",
            f"benchmark.columns.good={typed}", f"benchmark.columns.paradigm={typed}",
        ],
    )  # fmt: skip
    columns = config.benchmark.columns
    kept = [
        config.study,
        config.run,
        config.paths.runs,
        config.model.path,
        config.model.revision,
        config.benchmark.path,
    ]
    assert [*kept, config.benchmark.files[0], columns.good, columns.paradigm[0]] == [typed] * 9


def test_numbers_and_null_are_read_as_before():
    config = compose("eval", ["corpus=toy", "study=null", "seed=1_000", "recipe.lr=1e3", "sample.size=1_000"])
    assert (config.study, config.seed, config.recipe.lr, config.sample.size) == (None, 1000, 1000.0, "1k")


def test_sweeps_over_text_keep_what_was_typed():
    axes, _ = axes_of("train", ["corpus=toy", "study=1.10,1.2", "seed=1,2"])
    assert axes == {"study": ["'1.10'", "1.2"], "seed": ["1", "2"]}
    assert [compose("train", ["corpus=toy", f"study={study}"]).study for study in axes["study"]] == ["1.10", "1.2"]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("experiment/mine", "# @package _global_\nstudy: 1.10\n", "study: '1.10'"),
        (
            "experiment/mine",
            "# @package _global_\nhydra: {sweeper: {params: {study: '1.10,b'}}}\n",
            "study: \"'1.10',b\"",
        ),
        ("logger/mine", "defaults: [csv, _self_]\nproject: 1_000\n", "project: '1_000'"),
        ("benchmark/mine", "defaults: [local, _self_]\nname: mine\nlabels: [Yes, No]\n", "labels: 'Yes'"),
    ],
)
def test_a_file_with_a_number_for_a_text_is_refused(tmp_path, name, text, line):
    group, _, option = name.partition("/")
    (tmp_path / group).mkdir()
    (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.yaml") as caught:
        compose("train", ["corpus=toy", f"{group}={option}", f"hydra.searchpath=['file://{tmp_path}']"])
    assert line in str(caught.value)


def test_an_unknown_reference_names_its_key_and_the_way_out():
    words = ["corpus=toy", "study=s"]
    with pytest.raises(OmegaConfBaseException) as caught:
        compose("train", [*words, "paths.runs=/tmp/${x}"])
    message = describe(caught.value)
    assert message.startswith("paths.runs: ")
    assert r"\${name}" in message
    assert compose("train", [*words, r"paths.runs=/tmp/\${x}"]).paths.runs == "/tmp/${x}"
    assert compose("train", [*words, "paths.runs=/tmp/${study}"]).paths.runs == "/tmp/s"


@pytest.mark.slow
def test_commands_name_a_study_as_it_was_typed():
    words = ["-m", "train", "corpus=toy", "study=1.10", "--cfg", "job"]
    printed = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert yaml.safe_load(printed)["study"] == "1.10"
