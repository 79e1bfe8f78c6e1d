"""The configuration: experiments, groups, errors of overrides, run ids, sizes, and help."""

import re
import signal
import subprocess
import sys
from dataclasses import fields
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.run import check_benchmark
from pairscale import COMMANDS
from pairscale.command.compose import FOLDER, axes_of, compose, composed, schema_of
from pairscale.command.errors import describe
from pairscale.command.line import Line
from pairscale.errors import ConfigError
from pairscale.sizes import format_size, parse_size
from tests.support import ROOT
from train.config import run_id

EXPERIMENTS = sorted(path.stem for path in (FOLDER / "experiment").glob("*.yaml"))


def grid(experiment: str) -> dict[str, list[str]]:
    return axes_of("eval", Line((f"experiment={experiment}",)))


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (FOLDER / group).glob("*.yaml"))


@pytest.fixture(autouse=True)
def _some_data(monkeypatch):
    monkeypatch.setenv("PAIRSCALE_DATA", "/data")


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_value_of_an_experiments_grid_makes_another_run(experiment):
    axes = grid(experiment)
    needs_text = experiment.endswith("_local") or experiment.startswith("babylm")
    text = ["corpus.path=text.txt"] if needs_text else []
    last = {key: values[-1] for key, values in axes.items()}  # of ablate.action one that acts, so that filters differ
    points = [last, *({**last, key: value} for key, values in axes.items() for value in values[:-1])]
    options = [[f"{key}={value}" for key, value in point.items()] for point in points]
    runs = {run_id(compose("eval", [f"experiment={experiment}", *point, *text])) for point in options}
    assert len(runs) == len(points)


def test_published_grids_equal_the_papers():
    blimp = grid("blimp_learning_curves")
    assert blimp["model"] == ["lstm_blimp", "txl"]
    assert [parse_size(size) for size in blimp["sample.size"]] == [125_000 * 2**n for n in range(10)]
    assert len(blimp["seed"]) == 5
    climp = grid("climp_sizes")
    assert [parse_size(size) for size in climp["sample.size"]] == [400_000, 2_000_000, 21_500_000]
    assert climp["tokenizer"] == ["jieba", "char"]


@pytest.fixture
def axes_in(tmp_path):
    """Return a function from the axes of an experiment's file and words to those of a sweep of a command."""

    def axes(text, *words, command="eval"):
        (tmp_path / "experiment").mkdir(exist_ok=True)
        (tmp_path / "experiment" / "mine.yaml").write_text(f"# @package _global_\nstudy: mine\nsweep: {text}\n")
        return axes_of(command, Line.of(["--config-dir", str(tmp_path), "experiment=mine", *words]))

    return axes


def test_axes_are_those_of_the_command_and_values_stay_as_they_are(axes_in):
    text = "{model: [lstm_tiny], model.seed: [null, 1], model.tied: [true], method: [[lp], [lp, pen_lp]]}"
    axes = {"model": ["lstm_tiny"], "model.seed": ["null", "1"], "model.tied": ["true"]}
    assert axes_in(text) == axes | {"method": ["[lp]", "[lp,pen_lp]"]}
    assert axes_in(text, "model=txl_tiny,ngram", "seed=1,2", command="train") == axes | {
        "model": ["txl_tiny", "ngram"],
        "seed": ["1", "2"],
    }
    assert axes_in(text, "study=a,b", command="analysis") == {"study": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "words", "key"),
    [
        ("{seed: []}", [], "sweep.seed="),
        ("{seed: 3}", [], "sweep.seed=3"),
        ("[seed]", [], "sweep=[seed]"),
        ("{seed: [1]}", ["pool.jobs=1,2"], "pool.jobs=1,2"),
        ("{seed: [1]}", ["experiment=demo"], "experiment=mine experiment=demo"),
        ("{seed: [1]}", ["experiment=demo,mine"], "experiment="),
    ],
)
def test_axes_that_make_no_sweep_are_refused(axes_in, text, words, key):
    with pytest.raises(ConfigError, match=f"^{re.escape(key)}"):
        axes_in(text, *words)


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
    """Options of independent groups are composed together."""
    with_models = {"counted", "untrained"}  # recipes of n-gram models, and of those that come trained
    chosen = [[one for one in options(group) if one not in with_models] for group in together]
    for each in zip_longest(*chosen):
        choices = {group: option for group, option in zip(together, each, strict=True) if option is not None}
        words = [f"{group}={option}" for group, option in choices.items()]
        config = compose("eval", [*words, *(word for choice in choices.items() for word in NEEDED.get(choice, []))])
        assert {group: getattr(config, group).name for group in choices} == choices


@pytest.mark.parametrize(
    ("words", "key", "allowed"),
    [
        ("model.hiden=3", "model.hiden", "Did you mean 'model.hidden'?"),
        ("recipe.budget.q=1", "recipe.budget.q", "epochs, min_words, words"),
        ("modell=lstm", "modell", "Did you mean 'model'?"),
        ("modle=lstm", "modle", "Did you mean 'model'?"),
        ("size=4k", "size", "Did you mean 'sample.size'?"),
        ("sample=4k", "sample=4k", "such as sample.size=125k"),
        ("corpus.path=a,b.txt", "corpus.path=a,b.txt", "\"corpus.path='a,b.txt'\""),
        ("+foo=3", "foo", "Available: "),
        ("method.lp.x=1", "method.lp.x=1", "python -m eval"),
        ("experiment=demos", "demos", "Did you mean 'demo'?"),
        ("experiment=demo,baseline", "experiment=demo,baseline", "-m"),
        ("experiment=demo experiment=baseline", "experiment=baseline", "give one experiment"),
        ("model=gpt5", "gpt5", "Did you mean 'gpt2'?"),
        ("model=[lstm,gpt2]", "model=[lstm,gpt2]", "give one model"),
        ("model=", "model=", "give one model"),
        ("model.layers=two", "model.layers=two", "a whole number from 1 to 1,000"),
        ("model.layers=0", "model.layers=0", "from 1 to 1,000"),
        ("model.layers=1.5", "model.layers=1.5", "a whole number"),
        ("model.layers=true", "model.layers=true", "a whole number"),
        ("model.tied=1", "model.tied=1", "true or false"),
        ("model.dropout=1.5", "model.dropout=1.5", "from 0 to below 1"),
        ("model.tied=true model.hidden=3", "model.tied=true", "(650) must equal model.hidden (3)"),
        ("model=ngram model.prune=[0,2,1]", "model.prune=[0, 2, 1]", "never fall"),
        ("model=ngram model.prune=[1]", "model.prune=[1]", "starts with 0"),
        ("model=ngram model.order=2 model.prune=[0,0,1]", "model.prune=[0, 0, 1]", "1 to 2 thresholds"),
        ("model=ngram model.discount_fallback=[0.5,1]", "model.discount_fallback=[0.5, 1.0]", "three discounts"),
        ("model=ngram model.lmplz_memory=1", "model.lmplz_memory=1", "K, M, G, T or %"),
        ("model=ngram recipe=lstm", "recipe=lstm", "model=ngram"),
        ("recipe=counted", "recipe=counted", "model=lstm"),
        ("recipe=untrained", "recipe=untrained", "model=lstm, which has to be trained"),
        ("model=hf_causal model.path=x recipe=lstm", "recipe=lstm", "model=hf_causal, which is trained already"),
        ("sample.size=1/3M", "sample.size=1/3M", "a whole number above 0"),
        ("precision=fp16", "precision=fp16", "fp32, bf16"),
        ("recipe.budget.words=1M", "recipe.budget", "set exactly one of the two"),
        ("recipe.lr=-1", "recipe.lr=-1", "above 0"),
        ("recipe.lr=.inf", "recipe.lr=.inf", "above 0"),
        ("recipe.divide_by=1", "recipe.divide_by=1", "above 1"),
        ("corpus.split.valid=0", "corpus.split.valid=0", "above 0 and below 1"),
        ("corpus.words=1000.5", "corpus.words=1000.5", "a whole number"),
        ("corpus=gulordava_en", "tokenizer=word", "tokenizer=whitespace"),
        ("seed=-1", "seed=-1", "from 0 to"),
        ("seed=1,2", "seed=1,2", "-m"),
        ("seed=[1,2", "seed=[1,2", "key=value"),
        ("study=../x", "study=../x", "letters"),
        ("benchmark=toy method=[lpp]", "lpp", "Did you mean 'lp'?"),
        ("benchmark=toy method=[]", "method=[]", "at least one"),
        ("benchmark=[toy,blimpp]", "blimpp", "Did you mean 'blimp'?"),
        ("benchmark=toy method.morcela.beta=1", "method.morcela.beta", "not chosen"),
        ("benchmark=toy method=[morcela]", "method.morcela.beta", "no default"),
        ("benchmark=toy method=[pen_lp] method.pen_lp.alpha=20", "method.pen_lp.alpha=20", "from 0 to 10"),
        (
            "benchmark=toy method=[pen_lp] method.pen_lp.alfa=2",
            "method.pen_lp.alfa",
            "Did you mean 'method.pen_lp.alpha'?",
        ),
        ("benchmark=toy policy.context=text", "policy.context=text", "policy.context_text"),
        ("benchmark=toy scoring.token_pairs=some", "scoring.token_pairs=some", "a number of pairs, or all"),
    ],
)
def test_a_wrong_value_is_a_message_of_one_line(words, key, allowed):
    command = "eval" if words.startswith("benchmark=") else "train"
    with pytest.raises(ConfigError) as raised:
        check_benchmark(compose(command, ["corpus=toy", *words.split()]))
    line = describe(raised.value)
    assert key in line
    assert allowed in line
    assert "\n" not in line


@pytest.mark.parametrize("more", [[], ["recipe=lstm_tiny"]])
def test_a_model_without_a_recipe_is_told_how_to_name_one(tmp_path, more):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("type: lstm\nname: mine\n")
    with pytest.raises(ConfigError, match=r"recipe: .*recipe: NAME"):
        compose("train", ["--config-dir", str(tmp_path), "corpus=toy", "model=mine", *more])


def test_one_benchmark_takes_the_place_of_several(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "both.yaml").write_text("# @package _global_\nbenchmarks: [toy, blimp]\n")
    both = ["--config-dir", str(tmp_path), "corpus=toy", "experiment=both"]
    assert compose("eval", both).benchmarks == ["toy", "blimp"]
    assert compose("eval", [*both, "benchmark=climp"]).benchmarks is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        *((name, "give one benchmark") for name in ("analysis", "figure", "generate", "questionnaire")),
        ("plan", "only use one"),
    ],
)
def test_a_command_for_one_benchmark_refuses_several(command, message):
    with pytest.raises(ConfigError, match=message):
        compose(command, ["benchmark=[toy,blimp]"])


def test_no_experiment_can_be_chosen():
    assert compose("train", ["corpus=toy", "experiment=null"]) == compose("train", ["corpus=toy"])


@pytest.mark.parametrize("typed", ["1.10", "1e3", "true", "007", "a b"])
def test_a_text_stays_as_it_was_typed(typed):
    assert compose("train", ["corpus=toy", f"study={typed}"]).study == typed
    assert compose("train", ["corpus=toy", f"logger.tags=[{typed},x]"]).logger.tags == [typed, "x"]


def test_a_number_for_a_text_in_a_file_is_refused(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("defaults: [lstm_tiny, _self_]\nname: 1.10\n")
    with pytest.raises(ConfigError, match=r"model\.name=1\.1: .*must be text.*quotes"):
        compose("train", ["--config-dir", str(tmp_path), "corpus=toy", "model=mine"])


def test_sizes_are_read_in_every_form():
    for typed, size in (("1e6", "1M"), ("1_000", "1k"), ("125000", "125k"), ("1/8M", "125k")):
        config = compose("train", ["corpus=toy", f"sample.size={typed}", f"recipe.validate_every={typed}"])
        assert (config.sample.size, config.recipe.validate_every) == (size, size)


def test_an_error_of_the_program_is_not_described_as_the_users():
    assert describe(KeyError("x")) is None
    fault = KeyError("x")
    fault.__context__ = ConfigError("a value of the user's, in whose handling it was raised")
    assert describe(fault) is None


@pytest.mark.parametrize("command", [name for name, of in COMMANDS.items() if of.schema])
def test_a_command_refuses_the_keys_of_others(command):
    """What a script may give to all commands is the study, its seed and the folders."""
    own = {part.name for part in fields(schema_of(command))}
    assert {"seed", "paths"} <= own
    others = {part.name for name, of in COMMANDS.items() if of.schema for part in fields(schema_of(name))} - own
    for key in sorted(others):
        with pytest.raises(ConfigError, match=f"^{key}=x: .* does not use {key}"):
            composed(command, [f"{key}=x"])


def test_a_run_id_changes_with_what_can_change_the_numbers_and_with_nothing_else():
    plain = run_id(compose("eval", ["corpus=toy"]))
    assert plain.startswith("lstm-toy-word-1M-s1-")
    elsewhere = ["paths.runs=/elsewhere", "paths.store=/elsewhere", "study=other", "dry_run=true", "ties=half"]
    elsewhere += ["logger=tensorboard", "trainer.accelerator=cpu", "trainer.threads=1", "trainer.progress=false"]
    same = [*elsewhere, "benchmark=climp", "policy.context=eos", "sample.size=1000k"]
    assert run_id(compose("eval", ["corpus=toy", *same])) == plain
    others = ["seed=2", "sample.size=2M", "sample.unit=document", "sample.nested=true", "sample.seed=1"]
    others += ["corpus.split.seed=1", "corpus.seed=2", "tokenizer=char", "tokenizer.fit_on=sample", "model.dropout=0.3"]
    others += ["model.seed=1", "recipe.lr=1", "recipe.budget.epochs=1", "recipe.export=last", "precision=bf16"]
    assert len({plain, *(run_id(compose("eval", ["corpus=toy", one])) for one in others)}) == 1 + len(others)


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


HELP = """
import runpy, sys
sys.argv[1:] = ["--help"]
try:
    runpy.run_module(COMMAND, run_name="__main__")
except SystemExit as end:
    print("exit code", end.code, {"torch", "lightning", "pandas", "rich"} & set(sys.modules))
"""


@pytest.mark.parametrize("command", ["corpora", "train", "eval", "analysis"])
def test_help_lists_the_groups_and_imports_nothing_slow(command):
    script = HELP.replace("COMMAND", repr(command))
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "blimp_small" in done.stdout, done.stderr
    assert done.stdout.index("Examples") < done.stdout.index("experiment=")
    assert done.stdout.splitlines()[-1] == "exit code 0 set()"


def test_help_with_a_closed_pipe_ends_without_a_traceback():
    arguments = [sys.executable, "-m", "train", "--help"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == -signal.SIGPIPE


def test_a_value_that_names_no_key_is_explained_and_can_be_written_as_text():
    with pytest.raises(ConfigError, match=r"^corpus\.path: .*'x' not found\. .*itself, write \\\$\{name\}") as error:
        compose("corpora", ["corpus=local", "corpus.path=/data/${x}/a.txt"])
    assert "\n" not in str(error.value)
    assert compose("corpora", ["corpus=local", r"corpus.path=/data/\${x}/a.txt"]).corpus.path == "/data/${x}/a.txt"


@pytest.mark.parametrize("value", ["benchmark.pairs=10", "benchmark.paradigms=[transitive]"])
def test_values_of_a_benchmark_that_was_scored_are_refused(monkeypatch, value):
    """The analysis took these values in silence, and reported all pairs."""
    words = ["study=mine", "benchmark=blimp", "benchmark.name=mine"]
    monkeypatch.setattr("pairscale.command.line._current", Line.of(words))
    compose("analysis", words)
    monkeypatch.setattr("pairscale.command.line._current", Line.of([*words, value]))
    with pytest.raises(ConfigError, match=rf"{re.escape(value)}: this setting only has an effect"):
        compose("analysis", [*words, value])
