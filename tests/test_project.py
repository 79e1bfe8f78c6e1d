"""The rules of the house, read off the files: direction of imports, dependencies, pins, sizes, and what stays out."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PACKAGES = ("pairscale", "corpora", "train", "eval", "analysis", "conf")
# What each package may import of the others. conf joins all four; their __main__ files start from it.
ALLOWED = {
    "pairscale": {"pairscale"},
    "corpora": {"pairscale", "corpora"},
    "train": {"pairscale", "corpora", "train"},
    "eval": {"pairscale", "corpora", "train", "eval"},
    "analysis": {"pairscale", "corpora", "train", "eval", "analysis"},
    "conf": set(PACKAGES),
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SCRIPTS = [ROOT / "slurm" / "submit"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules that a file imports, wherever in it."""
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


def tracked() -> list[Path]:
    """Files under version control; those of the folder itself where it is no checkout (an unpacked archive)."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / file for file in listed.split("\0") if file and (ROOT / file).exists()]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_imports_go_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    command = path.name == "__main__.py" or '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    from_conf = command or path.name == "library.py" or name(path) == "analysis/run.py"
    allowed = ALLOWED[package] | ({"conf"} if from_conf else set())
    ours = {module.split(".")[0] for module in imports(path)} & set(PACKAGES)
    assert ours <= allowed, f"{name(path)} imports {sorted(ours - allowed)}"


@pytest.mark.parametrize("path", [path for path in SOURCES if path.parts[-2] == "eval"], ids=name)
def test_scoring_imports_no_lightning_of_its_own(path):
    assert not {module for module in imports(path) if module.split(".")[0] in {"lightning", "pytorch_lightning"}}


@pytest.mark.parametrize(
    "module",
    [
        "conf",
        "analysis.config",
        "train.runs.folder",
        "train.config",
        "eval.scores.files",
        "eval.diagnostics.files",
        "corpora.config",
    ],
)
def test_what_reads_configuration_and_files_loads_no_torch(module):
    assert_not_loaded(module, "torch")


def test_the_analysis_loads_no_torch():
    modules = [f"analysis.{path.stem}" for path in sorted((ROOT / "analysis").glob("*.py")) if path.stem != "__main__"]
    assert_not_loaded(", ".join(modules), "torch")


def assert_not_loaded(modules: str, library: str) -> None:
    code = f"import sys, {modules}; sys.exit({library!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


def declared(extra: str = "") -> set[str]:
    texts = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return {canonicalize_name(Requirement(text).name) for text in texts}


def imported(paths: list[Path]) -> set[str]:
    """Distributions of what files import, ours and Python's own left out."""
    roots = {module.split(".")[0] for path in paths for module in imports(path)}
    local = {*PACKAGES, "tests", *(path.stem for path in TESTS)}
    distributions = packages_distributions()
    foreign = roots - local - set(sys.stdlib_module_names)
    # What is not installed, as the peers need not be, is taken to be named as its module is.
    return {canonicalize_name(distributions.get(root, [root])[0]) for root in foreign}


def test_dependencies_are_the_imported_ones():
    assert imported(SOURCES) <= declared() | declared("tensorboard")
    # Altair writes images through vl-convert, W&B reads them by pillow; Hydra's launcher for SLURM is of a namespace
    # that several packages share. Nobody imports these by their names.
    assert declared() - imported(SOURCES) <= {"vl-convert-python", "pillow", "hydra-submitit-launcher"}
    assert imported(TESTS) <= declared() | declared("test") | declared("peers") | declared("bench")


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
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400
    assert path.stem not in {"utils", "helpers", "misc", "common"}


def test_commands_of_the_readme_name_what_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    experiments = set(re.findall(r"experiment=(\w+)", text))
    assert experiments
    assert all((ROOT / "conf" / "experiment" / f"{experiment}.yaml").exists() for experiment in experiments)
    targets = set(re.findall(r"^make (\w+)", text, flags=re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert all((ROOT / link).exists() for link in links), links


@pytest.mark.parametrize(("forbidden", "told"), [("0", "2 skipped"), ("1", "1 skipped, 1 error")])
def test_only_gpu_tests_may_skip_where_skips_are_forbidden(tmp_path, monkeypatch, forbidden, told):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    code = "import pytest\ndef test_data(real_data): pass\n@pytest.mark.gpu\ndef test_gpu(): pytest.skip('no GPU')\n"
    (tmp_path / "test_skips.py").write_text(code)
    monkeypatch.delenv("PAIRSCALE_DATA", raising=False)
    monkeypatch.setenv("PAIRSCALE_NO_SKIPS", forbidden)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist"], cwd=tmp_path, capture_output=True, text=True
    )
    assert told in done.stdout
    assert (done.returncode == 0) == (forbidden == "0")


def test_no_sentence_of_climp_is_in_the_repository(real_data):
    # CLiMP has no licence: its text stays out. Sentences of eight characters or more, so that no match is by chance.
    sentences = set()
    for file in (real_data / "climp").glob("*.csv"):
        text = file.read_text(encoding="utf-8")
        sentences.update(re.findall(r"[\u4e00-\u9fff][\u4e00-\u9fff，、]{7,}", text))
    assert len(sentences) > 10_000
    for path in tracked():
        held = re.findall(r"[\u4e00-\u9fff][\u4e00-\u9fff，、]{7,}", path.read_bytes().decode("utf-8", errors="ignore"))
        assert not sentences.intersection(held), name(path)
