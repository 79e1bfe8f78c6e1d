"""Return the version of this checkout or installation, which `--version` prints."""

import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, version

from pairscale import ROOT


def version_text() -> str:
    """Return "pairscale 1.0.0 (abcdef01)", with the commit if this is a Git checkout."""
    commit = _commit()
    return f"pairscale {_version()}" + (f" ({commit})" if commit else "")


def _version() -> str:
    """Return the version in pyproject.toml, because a checkout may be newer than its installation's metadata."""
    project = ROOT / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    try:
        return version("pairscale")
    except PackageNotFoundError:
        return "of unknown version"


def _commit() -> str:
    """Return the short commit of this checkout, with "+" if its files differ from it, or "" outside a checkout."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--abbrev=8", "--dirty=+"]
    if not (ROOT / ".git").exists():  # an installed package, perhaps inside somebody else's repository
        return ""
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
