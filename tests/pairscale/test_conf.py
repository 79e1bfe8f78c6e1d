"""The configuration: experiments, groups, errors of overrides, run ids, sizes, and help."""

import os
import re
import signal
import subprocess
import sys
from itertools import product, zip_longest

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hypothesis import given
from hypothesis import strategies as st

from pairscale.command.compose import compose
from pairscale.command.errors import FOLDER, describe
from pairscale.command.help import NO_GROUPS, groups
from pairscale.command.sweeps import grid
from pairscale.errors import ConfigError
from pairscale.sizes import format_size, parse_size, readable_size
from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.expected_runs import expected_runs
from train.runs.identity import run_id

EXPERIMENTS = sorted(path.stem for path in (FOLDER / "experiment").glob("*.yaml"))
COMMANDS = ("corpora", "corpora.annotate", "train", "eval", "eval.questionnaire", "analysis")


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (FOLDER / group).glob("*.yaml"))


@pytest.fixture(autouse=True)
def _some_data(monkeypatch):
    monkeypatch.setenv("PAIRSCALE_DATA", "/data")


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_value_of_an_experiments_grid_makes_another_run(experiment):
    axes = grid(experiment)
    text = ["corpus.path=text.txt"] if experiment.endswith("_local") else []
    last = {key: values[-1] for key, values in axes.items()}  # of ablate.action one that acts, so that filters differ
    points = [last, *({**last, key: value} for key, values in axes.items() for value in values[:-1])]
    options = [[f"{key}={value}" for key, value in point.items()] for point in points]
    runs = {run_id(compose("eval", [f"experiment={experiment}", *point, *text])) for point in options}
    assert len(runs) == len(points)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_names_its_study(experiment):
    text = ["corpus.path=text.txt"] if experiment.endswith("_local") else []
    assert compose("analysis", [f"experiment={experiment}", *text]).study == experiment


def test_published_grids_equal_the_papers():
    blimp = grid("blimp_learning_curves")
    assert blimp["model"] == ["lstm_blimp", "txl"]
    assert [parse_size(size) for size in blimp["sample.size"]] == [125_000 * 2**n for n in range(10)]
    assert len(blimp["seed"]) == 5
    climp = grid("climp_sizes")
    assert [parse_size(size) for size in climp["sample.size"]] == [400_000, 2_000_000, 21_500_000]
    assert climp["tokenizer"] == ["jieba", "char"]


@pytest.mark.parametrize("experiment", ["blimp_small", "climp_sizes_local", "blimp_learning_curves"])
def test_the_runs_of_a_grid_are_those_that_its_points_name(experiment):
    text = ["corpus.path=text.txt"] if experiment.endswith("_local") else []
    expected = expected_runs(experiment)
    assert len(expected) == len(list(product(*grid(experiment).values())))
    for run, point in [*expected.items()][:: len(expected) // 3]:
        assert run_id(compose("eval", [f"experiment={experiment}", *point.split(), *text])) == run
    assert run_id(compose("eval", ["experiment=blimp_small", "tokenizer=word"])) not in expected


# Values without a default that some options need.
NEEDED = {
    ("corpus", "babylm"): ["corpus.path=babylm"],
    ("corpus", "conllu"): ["corpus.path=text.conllu"],
    ("corpus", "local"): ["corpus.path=text.txt"],
    ("corpus", "gulordava_en"): ["tokenizer=whitespace"],
    ("corpus", "wikitext103"): ["tokenizer=whitespace"],
    ("model", "hf_causal"): ["model.path=gpt2"],
    ("model", "hf_masked"): ["model.path=bert"],
    ("model", "huggingface"): ["model.architecture=starcoder2"],
    ("model", "imported"): ["model.checkpoint=model.pt"],
}


@pytest.mark.parametrize(
    "together",
    [
        pytest.param(("model", "corpus", "benchmark", "logger"), marks=pytest.mark.slow),
        ("tokenizer", "recipe"),
    ],
)
def test_every_option_of_a_group_converts_and_keeps_its_name(together):
    """Options of independent groups are composed together; a model's recipe has its name."""
    chosen = [[one for one in options(group) if group != "recipe" or one not in options("model")] for group in together]
    for each in zip_longest(*chosen):
        choices = {group: option for group, option in zip(together, each, strict=True) if option is not None}
        words = [f"{group}={option}" for group, option in choices.items()]
        config = compose("eval", [*words, *(word for choice in choices.items() for word in NEEDED.get(choice, []))])
        assert {group: getattr(config, group).name for group in choices} == choices
        assert "model" not in choices or config.recipe.name == choices["model"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.hiden=3", "model.hiden: no such key; did you mean hidden? available: dropout, embedding, hidden,"),
        (
            "sample.sise=1M",
            "sample.sise: no such key; did you mean size? available: count, nested, seed, shuffle, size,",
        ),
        ("recipe.budget.q=1", "recipe.budget.q: no such key; available: epochs, min_words, words"),
        ("modell=lstm", "modell: no such key; did you mean model? available: ablate, analysis, benchmark,"),
        ("+foo=3", "foo: no such key; available: ablate, analysis,"),
        ("+model.hiden=3", "model.hiden: no such key; did you mean hidden?"),
        ("method=[lpp]", "method=lpp: no such method; did you mean lp? available: ab_prompt,"),
        ("filter=null", "GROUP=null: a group takes the name of a file in conf/GROUP; leave it out, or"),
        ("experiment=demos", "experiment=demos: no such experiment; did you mean demo? available: ablation_small, b"),
        ("model.layers=two", "Value 'two' of type 'str' could not be converted to Integer"),
        ("model=gpt5", "model=gpt5: no such model; did you mean gpt2? available:"),
        ("sample.unit=line", "sample.unit=line: must be one of document, sentence"),
        ("sample.size=1/3M", "sample.size=1/3M: must be a whole number above 0"),
        ("precision=fp16", "precision=fp16: must be one of bf16, fp32"),
        ("model.tied=true model.hidden=3", "model.tied=true needs model.embedding = model.hidden"),
        ("recipe.budget.words=1M", "recipe.budget: give exactly one of epochs"),
        ("policy.context=text", "policy.context=text and policy.context_text belong together"),
        ("corpus.split.valid=0", "corpus.split: valid=0.0"),
        ("corpus=gulordava_en", "tokenizer=word: would split the words of the pretokenised corpus=gulordava_en again"),
        ("model.layers=0", "model.layers=0: must be from 1 to 1000"),
        ("model.dropout=1.5", "model.dropout=1.5: must be 0 or more and below 1"),
        ("model=txl model.attention_dropout=-0.1", "model.attention_dropout=-0.1: must be 0 or more and below 1"),
        ("trainer.threads=0", "trainer.threads=0: must be from 1 to 4096"),
        ("trainer.accelerator=tpu", "trainer.accelerator=tpu: must be one of auto, cpu, gpu"),
        ("seed=-1", "seed=-1: must be a whole number from 0 to"),
        ("study=../x", "study=../x: names a folder; must consist of letters"),
        ("study=a/b", "study=a/b: names a folder"),
        ("recipe.lr=-1", "recipe.lr=-1.0: must be above 0"),
        ("recipe.clip=0", "recipe.clip=0.0: must be above 0"),
        ("recipe.divide_by=1", "recipe.divide_by=1.0: must be above 1"),
        ("recipe=adam_cosine recipe.warmup=2", "recipe.warmup=2.0: must be a share of the steps"),
        ("tokenizer.vocab_size=0", "tokenizer.vocab_size=0: must be from 1 to"),
        ("model=ngram model.order=1", "model.order=1: must be from 2 to 7."),
        ("model=ngram model.order=8", "model.order=8: must be from 2 to 7."),
        ("model=ngram model.vocabulary=all", "model.vocabulary=all: must be one of closed, open"),
        ("model=ngram model.prune=[0,2,1]", "model.prune=[0, 2, 1]: must be at most 5 thresholds"),
        ("model=ngram model.prune=[1]", "that begin with 0 and never fall, such as [0,0,1]"),
        ("model=ngram model.order=2 model.prune=[0,0,1]", "model.prune=[0, 0, 1]: must be at most 2 thresholds"),
        ("model=ngram model.discount_fallback=[0.5,1]", "model.discount_fallback=[0.5, 1.0]: must be three discounts"),
        ("model=ngram model.lmplz_memory=1", "model.lmplz_memory=1: must be a number with K, M, G, T or %"),
        ("model=ngram recipe=lstm", "recipe=lstm with model=ngram: an n-gram model is counted, not trained"),
        ("recipe=ngram", "recipe=ngram with model=lstm: is for n-gram models"),
    ],
)
def test_a_wrong_override_is_a_message_of_one_line(override, message):
    with pytest.raises(Exception) as raised:  # noqa: PT011 -- Hydra's, OmegaConf's or ours: the line counts
        compose("train", override.split())
    line = describe(raised.value)
    assert line is not None
    assert message in line
    assert "\n" not in line


def test_an_error_of_the_program_is_not_described_as_the_users():
    assert describe(KeyError("x")) is None
    assert describe(HydraException("no such group")) == "no such group"
    fault = KeyError("x")
    fault.__context__ = ConfigError("a value of the user's, in whose handling it was raised")
    assert describe(fault) is None


def test_an_unknown_experiment_lists_the_available_ones():
    with pytest.raises(ConfigError, match=r"experiment=dem: no such experiment; available: .*demo"):
        grid("dem")


def test_the_run_id_begins_with_readable_values():
    name = run_id(compose("train", ["corpus=toy", "model=txl_tiny", "sample.size=1/8M", "seed=2"]))
    assert name.startswith("txl_tiny-toy-word-125k-s2-")


@pytest.fixture(scope="module")
def toy_run():
    return run_id(compose("eval", ["corpus=toy"]))


def test_values_that_cannot_change_the_numbers_do_not_change_the_run_id(toy_run):
    overrides = [
        "paths.runs=/elsewhere",
        "paths.store=/elsewhere",
        "logger=tensorboard",
        "trainer.accelerator=cpu",
        "trainer.threads=1",
        "trainer.progress=false",
        "benchmark=climp",
        "policy.context=eos",
        "analysis.confidence=0.9",
        "study=other",
        "dry_run=true",
        "ties=half",
        "sample.size=1000k",
    ]
    assert run_id(compose("eval", ["corpus=toy", *overrides])) == toy_run


@pytest.mark.parametrize(
    "override",
    [
        "seed=2",
        "sample.size=2M",
        "sample.unit=document",
        "sample.nested=true",
        "sample.seed=1",
        "corpus.split.seed=1",
        "corpus.seed=2",
        "tokenizer=char",
        "tokenizer.fit_on=sample",
        "model.dropout=0.3",
        "model.seed=1",
        "recipe.lr=1",
        "recipe.budget.epochs=1",
        "recipe.export=last",
        "precision=bf16",
    ],
)
def test_values_that_can_change_the_numbers_change_the_run_id(toy_run, override):
    assert run_id(compose("eval", ["corpus=toy", override])) != toy_run


@given(st.integers(1, 10**12))
def test_a_size_is_read_back_from_its_shortest_form(number):
    assert parse_size(format_size(number)) == number
    assert parse_size(str(number)) == number


@given(st.integers(0, 6), st.sampled_from(["k", "M"]))
def test_fractions_of_a_size_are_exact(power, unit):
    whole = {"k": 10**3, "M": 10**6}[unit]
    if whole % 2**power:
        with pytest.raises(ConfigError):
            parse_size(f"1/{2**power}{unit}")
    else:
        assert parse_size(f"1/{2**power}{unit}") * 2**power == whole


@given(st.text(max_size=8))
def test_any_text_is_a_size_above_zero_or_an_error(text):
    try:
        number = parse_size(text)
    except ConfigError:
        return
    assert number > 0
    assert re.fullmatch(r"[\d_./]+[kM]?", text)


HELP = """
import runpy, sys
sys.argv[1:] = ["--help"]
try:
    runpy.run_module(COMMAND, run_name="__main__")
except SystemExit as end:
    print("exit code", end.code, {"torch", "lightning", "pandas", "rich"} & set(sys.modules))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_the_groups_and_imports_nothing_slow(command):
    script = HELP.replace("COMMAND", repr(command))
    wide = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=wide, capture_output=True, text=True, timeout=60
    )
    assert re.search(r"^  experiment: [^:]*\bblimp_small\b", done.stdout, re.MULTILINE), done.stderr
    *_, last, end = done.stdout.splitlines()
    assert last.startswith("Any value")
    assert end == "exit code 0 set()"


def test_help_with_a_closed_pipe_ends_without_a_traceback():
    arguments = [sys.executable, "-m", "train", "--help"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == -signal.SIGPIPE


def test_help_lists_the_groups_of_hydra():
    """Schemas are left out: they only check the values of the other options."""
    compose("train", [])  # registers them
    with hydra.initialize_config_dir(str(FOLDER), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        options = {group: loader.get_group_options(group) for group in loader.list_groups("")}
    shown = {group: [name for name in names if not name.endswith("_schema")] for group, names in options.items()}
    assert groups() == {group: names for group, names in shown.items() if names and group not in NO_GROUPS}


def test_an_unknown_override_is_a_message_of_one_line_and_exit_code_2():
    done = run_command("train", "model.hiden=3")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "model.hiden: no such key; did you mean hidden?" in done.stderr


def test_a_new_option_at_its_default_does_not_change_run_ids():
    """Runs from before the Transformer-XL's adaptive softmax have the same ids."""
    ids = [
        run_id(compose("train", ["corpus=toy", "model=txl_tiny", *more]))
        for more in ([], ["model.div_val=1", "model.cutoffs=[]"], ["model.cutoffs=[100]"], ["model.pre_norm=true"])
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("size", "shown"),
    [("31250", "31,250"), ("125k", "125k"), ("31250 words", "31,250 words"), ("1 steps", "1 step"), ("1", "1")],
)
def test_sizes_are_written_readably(size, shown):
    assert readable_size(size) == shown
