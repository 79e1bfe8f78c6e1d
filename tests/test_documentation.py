"""The documentation: its commands compose, and its links have targets."""

import re
import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from pairscale import MODULES
from pairscale.command.compose import compose
from tests.support import PAGES, ROOT
from tests.support.simulated_study import SimulatedStudy

PLACEHOLDERS = {"experiment": "demo", "corpus": "toy", "tokenizer": "word", "benchmark": "toy"}  # for NAME
DOCUMENTS = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "slurm/README.md"))]


def page_name(path):
    return str(path.relative_to(ROOT))


def commands(text):
    """Yield (command, overrides) of each `python -m MODULE` and `slurm/submit`, in shell blocks and in code spans."""
    lines = re.findall(r"`((?:python -m|slurm/submit) [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
        lines += block.replace("\\\n", " ").splitlines()
    for line in lines:
        if "--config-dir my_conf" in line:
            continue  # a folder of the tutorial, whose commands tests/test_tutorial.py runs
        match shlex.split(line, comments=True):
            case ["python", "-m", module, *words] if module.split(".")[0] not in {"pytest", "spacy", "tests"}:
                yield MODULES[module], overrides(words)
            case ["slurm/submit", *words]:
                yield "eval", [word for word in overrides(words) if not word.startswith("slurm.")]


def overrides(words):
    """Return the overrides among the words of a command, with a value for each placeholder."""
    words = [word for word in words if not word.startswith("-") and word not in {"...", "job"}]  # --cfg job
    return [f"{word[:-4]}{PLACEHOLDERS.get(word[:-5], 'NAME')}" if word.endswith("=NAME") else word for word in words]


def first_of_sweep(override):
    """Return an override with the first value of its axis, as one run of the sweep gets it."""
    if not override.is_sweep_override():
        return override.input_line
    return f"{override.key_or_group}={next(override.sweep_string_iterator())}"


@pytest.mark.slow
def test_commands_compose(monkeypatch):
    monkeypatch.setenv("PAIRSCALE_DATA", "/path/to/data")
    shown = set()
    for path in DOCUMENTS:
        for command, words in commands(path.read_text(encoding="utf-8")):
            parsed = OverridesParser.create().parse_overrides(words)
            shown.add((command, *map(first_of_sweep, parsed)))
    for command, *words in sorted(shown):
        if command != "lmplz":
            compose(command, words)


@pytest.mark.parametrize("path", DOCUMENTS, ids=page_name)
def test_experiments_targets_and_links_exist(path):
    text = path.read_text(encoding="utf-8")
    of_the_page = re.findall(r"my_conf/experiment/(\w+)\.yaml", text)
    experiments = set(re.findall(r"experiment=([a-z]\w*)", text)).difference(of_the_page)
    assert not [one for one in experiments if not (ROOT / "conf" / "experiment" / f"{one}.yaml").exists()]
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, flags=re.MULTILINE))
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, flags=re.MULTILINE)]
    for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", text):
        linked = path.parent / target if target else path
        if linked.parent.name == "reference":
            continue  # made by `make docs`, which checks links to it
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), flags=re.MULTILINE)
            names = [re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings]
            assert anchor in names, f"{target}#{anchor}"


@pytest.mark.release
@pytest.mark.filterwarnings("default")  # those of bambi and its samplers
def test_the_hierarchical_model_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("bambi")
    SimulatedStudy(name="mine").write(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/guides/models_of_your_own.md").read_text(encoding="utf-8")
    (script,) = [one for one in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "bambi.Model" in one]
    exec(compile(script, "models_of_your_own.md", "exec"), {})
    assert "doublings:curve" in capsys.readouterr().out
