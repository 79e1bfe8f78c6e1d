"""The rules of the house: directions of imports, dependencies, sizes, and texts that stay out of the repository."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import ROOT

PACKAGES = ("pairscale", "corpora", "train", "eval", "analysis")  # each imports itself and those before it
CROWDED, LONG = 15, 700  # modules of a folder, lines of a module
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
OF_THIS_MACHINE = re.compile(r"/work/(?:shared|main|\.)|/root/|/tmp/w/|/home/\w")


def module_name(path: Path) -> str:
    """Return the dotted name of a module's file."""
    return str(path.relative_to(ROOT)).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


MODULES = {module_name(path): path for path in SOURCES}


def imports(path: Path) -> set[str]:
    """Return the names that a file imports, anywhere in it: modules, and members of modules."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= members if members <= MODULES.keys() else {str(node.module), *members}
    return names


IMPORTED = {module: imports(path) for module, path in MODULES.items()}


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / file for file in listed.split("\0") if file and (ROOT / file).exists()]


def test_imports_go_one_way():
    for module, names in IMPORTED.items():
        above = PACKAGES[PACKAGES.index(module.split(".")[0]) + 1 :]
        assert not [name for name in names if name.split(".")[0] in (*above, "tests")], module
        if module.startswith("eval."):
            assert not [name for name in names if name.split(".")[0] in ("lightning", "pytorch_lightning")], module


def test_neither_modules_nor_rooms_import_in_circles():
    """The rooms of a folder have an order; the folder's own modules may use its rooms and be used by them."""
    of_modules = {module: names & MODULES.keys() - {module} for module, names in IMPORTED.items()}
    of_rooms: dict[str, set[str]] = {}
    for module, used in of_modules.items():
        for other in used:
            rooms = [MODULES[one].relative_to(ROOT).parent.parts for one in (module, other)]
            apart = next((n for n, (ours, theirs) in enumerate(zip(*rooms, strict=False)) if ours != theirs), None)
            if apart is not None:
                ours, theirs = ("/".join(room[: apart + 1]) for room in rooms)
                of_rooms.setdefault(ours, set()).add(theirs)
    for graph in (of_modules, of_rooms):
        TopologicalSorter(graph).prepare()  # raises CycleError with the circle


def test_folders_say_what_is_inside_and_are_not_crowded():
    for room in {path.parent for path in SOURCES}:
        assert ast.get_docstring(ast.parse((room / "__init__.py").read_text())), room
        assert len(list(room.glob("*.py"))) <= CROWDED + 1, room
    assert not [path for path in [*SOURCES, *TESTS] if len(path.read_text().splitlines()) > LONG]


@pytest.mark.slow
def test_configuration_files_and_analysis_load_no_torch():
    ours = [module for module in MODULES if module.startswith("analysis.") and not module.endswith("__main__")]
    ours += ["pairscale.command.main", "train.sweeps", "train.config", "train.runs.folder", "eval.scores.files"]
    code = f"import sys, corpora.config, {', '.join(ours)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def declared(*extras: str) -> set[str]:
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    return {canonicalize_name(Requirement(text).name) for text in texts}


def test_what_is_imported_is_declared_and_pinned():
    distributions = packages_distributions()
    of_tests = {name for path in TESTS for name in imports(path)}
    extras = PROJECT["optional-dependencies"].keys() - {"test", "peers", "docs", "dev"}
    ours = {*PACKAGES, "conf", "tests", *sys.stdlib_module_names, *(path.stem for path in TESTS)}
    for names, known in (
        (set().union(*IMPORTED.values()), declared(*extras)),
        (of_tests, declared(*extras, "test", "peers")),
    ):
        foreign = {name.split(".")[0] for name in names} - ours
        # A module that isn't installed, as the peers may be, counts as a distribution of its name.
        assert {canonicalize_name(distributions.get(name, [name])[0]) for name in foreign} <= known
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    every = [*PROJECT["dependencies"], *(text for of in PROJECT["optional-dependencies"].values() for text in of)]
    for requirement in map(Requirement, every):
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_no_file_names_a_path_of_this_machine():
    for path in tracked_files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        assert path == Path(__file__) or not OF_THIS_MACHINE.search(text), path


def test_no_sentence_of_climp_is_in_the_repository(real_data):
    # CLiMP has no licence, so its text stays out. Shorter sentences than eight characters could match by chance.
    sentence = re.compile(r"[\u4e00-\u9fff][\u4e00-\u9fff，、]{7,}")
    files = [file.read_text(encoding="utf-8") for file in (real_data / "climp").glob("*.csv")]
    sentences = {one for text in files for one in sentence.findall(text)}
    assert len(sentences) > 10_000
    for path in tracked_files():
        assert sentences.isdisjoint(sentence.findall(path.read_bytes().decode("utf-8", errors="ignore"))), path
