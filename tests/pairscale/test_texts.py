"""Keys whose type is text keep what was typed."""

import subprocess
import sys

import pytest
import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.command.sweeps import axes_of
from pairscale.errors import ConfigError
from pairscale.sizes import parse_size
from tests.support import ROOT
from train.runs.identity import run_id

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


SIZES = {
    "sample.size": [],
    "recipe.budget.words": ["recipe.budget.epochs=null"],
    "recipe.budget.min_words": [],
    "recipe.validate_every": [],
    "recipe.checkpoint_every": [],
}


@pytest.mark.parametrize("key", SIZES)
def test_sizes_are_read_as_numbers(key):
    """1_000 and 1000 are one run, and 1e3 is a size; text in a file is no error."""
    composed = [compose("train", ["corpus=toy", *SIZES[key], f"{key}={typed}"]) for typed in ("1_000", "1000", "1e3")]
    assert run_id(composed[0]) == run_id(composed[1])
    sizes = [parse_size(OmegaConf.select(OmegaConf.structured(config), key)) for config in composed]
    assert sizes == [1000] * 3


def test_the_size_of_others_runs_is_read_as_a_number():
    typed = ["1_000", "1000", "1e3"]
    sizes = [compose("analysis", ["study=s", f"results.size={one}"]).results.size for one in typed]
    assert sizes == ["1000", "1000", "1000.0"]


def test_sizes_in_files_are_read_as_numbers(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("# @package _global_\nsample: {size: 1_000}\n")
    words = ["corpus=toy", "experiment=mine", f"hydra.searchpath=['file://{tmp_path}']"]
    assert compose("train", words).sample.size == "1k"


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


@pytest.mark.parametrize("named", ["parent", "parent.yaml", "/experiment/parent", "between"])
def test_a_number_for_a_text_in_an_inherited_file_is_refused(tmp_path, named):
    (tmp_path / "experiment").mkdir()
    files = {"child": f"defaults: [{named}, _self_]", "between": "defaults: [parent]", "parent": "study: 1.10"}
    for name, text in files.items():
        (tmp_path / "experiment" / f"{name}.yaml").write_text(f"# @package _global_\n{text}\n")
    words = ["corpus=toy", "experiment=child", f"hydra.searchpath=['file://{tmp_path}']"]
    with pytest.raises(ConfigError, match=r"parent\.yaml: study: 1\.10 is read as a number"):
        compose("train", words)
    (tmp_path / "experiment" / "parent.yaml").write_text("# @package _global_\nstudy: '1.10'\n")
    assert compose("train", words).study == "1.10"


@pytest.mark.parametrize("chosen", [[], ["logger=csv"]])
def test_a_file_of_a_group_in_the_defaults_is_read_if_nothing_else_is_chosen(tmp_path, chosen):
    files = {
        "experiment": "# @package _global_\ndefaults: [override /logger: mine]\n",
        "logger": "defaults: [wandb, _self_]\nproject: 1_000\n",
    }
    for group, text in files.items():
        (tmp_path / group).mkdir()
        (tmp_path / group / "mine.yaml").write_text(text)
    words = ["corpus=toy", "experiment=mine", *chosen, f"hydra.searchpath=['file://{tmp_path}']"]
    if chosen:
        assert compose("train", words).corpus.name == "toy"
    else:
        with pytest.raises(ConfigError, match="project: 1_000 is read as a number"):
            compose("train", words)


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
