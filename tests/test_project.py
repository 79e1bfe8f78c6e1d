"""The rules of the house: directions of imports, dependencies, pins, sizes of files, and texts that stay out."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import ROOT

PACKAGES = ("pairscale", "corpora", "train", "eval", "analysis")  # each imports itself and those before it
CROWDED = 14  # modules of a folder, without __init__.py
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SCRIPTS = [ROOT / "slurm" / "submit"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return frozenset(names)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tracked_files() -> list[Path]:
    """Return the files under version control, or all files of the folder if it is no checkout (an unpacked archive)."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / file for file in listed.split("\0") if file and (ROOT / file).exists()]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_imports_go_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    ours = {module.split(".")[0] for module in imports(path)} & set(PACKAGES)
    above = ours - set(PACKAGES[: PACKAGES.index(package) + 1])
    assert not above, f"{name(path)} imports {sorted(above)}"


def modules() -> dict[str, Path]:
    """Return the files of modules by dotted name."""
    return {name(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in SOURCES}


@cache
def imported_modules() -> dict[str, frozenset[str]]:
    """Return the modules of ours that each module imports, without the packages on the way to them."""
    files = modules()
    graph = {}
    for module, path in files.items():
        used = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                used |= members & files.keys() if members <= files.keys() else {str(node.module)} | members
        graph[module] = frozenset(used & files.keys() - {module})
    return graph


def test_modules_have_no_circle_of_imports():
    order = TopologicalSorter(imported_modules())
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_rooms_have_no_circle_of_imports():
    """The rooms of a folder have an order; the folder's own modules may use its rooms and be used by them."""
    files = modules()
    graph: dict[str, set[str]] = {}
    for module, used in imported_modules().items():
        for other in used:
            ours, theirs = (files[one].relative_to(ROOT).parent.parts for one in (module, other))
            shared = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
            if shared is not None:
                graph.setdefault("/".join(ours[: shared + 1]), set()).add("/".join(theirs[: shared + 1]))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_every_room_has_a_docstring_and_is_not_crowded():
    rooms = {path.parent for path in SOURCES}
    assert not [name(room) for room in rooms if not ast.get_docstring(ast.parse((room / "__init__.py").read_text()))]
    assert not [name(room) for room in rooms if len(list(room.glob("*.py"))) > CROWDED + 1]


def test_tests_mirror_the_rooms():
    folders = {path.parent.relative_to(ROOT / "tests") for path in TESTS if path.stem.startswith("test_")}
    assert {folder.parts[0] for folder in folders - {Path()}} >= set(PACKAGES)
    assert not [str(folder) for folder in folders if folder != Path("bench") and not (ROOT / folder).is_dir()]


def test_no_test_module_imports_from_another():
    line = re.compile(r"^\s*(?:from|import) tests\b.*\btest_\w+", re.MULTILINE)
    assert not [f"{name(path)}: {match}" for path in TESTS for match in line.findall(path.read_text(encoding="utf-8"))]


def test_conf_holds_only_values():
    assert [name(path) for path in (ROOT / "conf").rglob("*.py")] == ["conf/__init__.py"]
    assert (ROOT / "conf" / "__init__.py").read_text() == ""


@pytest.mark.parametrize("path", [path for path in SOURCES if path.parts[-2] == "eval"], ids=name)
def test_scoring_imports_no_lightning_of_its_own(path):
    assert not {module for module in imports(path) if module.split(".")[0] in {"lightning", "pytorch_lightning"}}


@pytest.mark.parametrize(
    "module",
    [
        "pairscale.command.main",
        "train.sweeps",
        "analysis.config",
        "train.runs.folder",
        "train.config",
        "eval.scores.files",
        "corpora.config",
    ],
)
def test_modules_of_configuration_and_files_load_no_torch(module):
    assert_not_loaded(module, "torch")


@pytest.mark.slow
def test_the_analysis_loads_no_torch():
    ours = [module for module in modules() if module.startswith("analysis.") and not module.endswith("__main__")]
    assert_not_loaded(", ".join(ours), "torch")


def assert_not_loaded(modules: str, library: str) -> None:
    code = f"import sys, {modules}; sys.exit({library!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


def declared_distributions(extra: str = "") -> set[str]:
    texts = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return {canonicalize_name(Requirement(text).name) for text in texts}


def imported_distributions(paths: list[Path]) -> set[str]:
    """Return the distributions of third-party modules that files import."""
    roots = {module.split(".")[0] for path in paths for module in imports(path)}
    local = {*PACKAGES, "conf", "tests", *(path.stem for path in TESTS)}
    distributions = packages_distributions()
    foreign = roots - local - set(sys.stdlib_module_names)
    # A module that is not installed, as the peers may be, counts as a distribution of its name, but for this one.
    others = {"sklearn": "scikit-learn"}
    return {canonicalize_name(distributions.get(root, [others.get(root, root)])[0]) for root in foreign}


def test_dependencies_are_the_imported_distributions():
    optional = set().union(*map(declared_distributions, ("tensorboard", "syntax")))
    assert imported_distributions(SOURCES) <= declared_distributions() | optional
    # W&B reads images with pillow. Nobody imports these by name.
    assert declared_distributions() - imported_distributions(SOURCES) <= {
        "vl-convert-python",
        "pillow",
    }
    assert imported_distributions(TESTS) <= declared_distributions() | declared_distributions(
        "test"
    ) | declared_distributions("peers") | declared_distributions("bench")


def test_constraints_pin_every_requirement_within_its_range():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {}
    for line in lines:
        if not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.]+", line), line
            package, _, version = line.partition("==")
            pins[canonicalize_name(package)] = version
    extras = [text for extra in PROJECT["optional-dependencies"].values() for text in extra]
    for requirement in map(Requirement, [*PROJECT["dependencies"], *extras]):
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("path", [*SOURCES, *TESTS, *SCRIPTS], ids=name)
def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 700
    assert path.stem not in {"utils", "helpers", "misc", "common"}


@pytest.mark.parametrize(("forbidden", "summary"), [("0", "3 skipped"), ("1", "2 skipped, 1 error")])
def test_only_tests_of_gpus_and_downloads_may_skip_if_skips_are_forbidden(tmp_path, monkeypatch, forbidden, summary):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  gpu\n  download\n")
    code = "import pytest\ndef test_data(real_data): pass\n"
    for name in ("gpu", "download"):
        code += f"@pytest.mark.{name}\ndef test_{name}(): pytest.skip('no {name}')\n"
    (tmp_path / "test_skips.py").write_text(code)
    monkeypatch.delenv("PAIRSCALE_DATA", raising=False)
    monkeypatch.setenv("PAIRSCALE_NO_SKIPS", forbidden)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist"], cwd=tmp_path, capture_output=True, text=True
    )
    assert summary in done.stdout
    assert (done.returncode == 0) == (forbidden == "0")


def test_no_sentence_of_climp_is_in_the_repository(real_data):
    # CLiMP has no licence, so its text stays out. Shorter sentences than eight characters could match by chance.
    sentences = set()
    for file in (real_data / "climp").glob("*.csv"):
        text = file.read_text(encoding="utf-8")
        sentences.update(re.findall(r"[\u4e00-\u9fff][\u4e00-\u9fff，、]{7,}", text))
    assert len(sentences) > 10_000
    for path in tracked_files():
        held = re.findall(r"[\u4e00-\u9fff][\u4e00-\u9fff，、]{7,}", path.read_bytes().decode("utf-8", errors="ignore"))
        assert not sentences.intersection(held), name(path)
