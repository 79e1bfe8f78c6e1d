"""Members of registries: modules of this checkout, and plug-ins of other distributions, that register when imported."""

import sys
import traceback
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules

from pairscale.errors import ConfigError

PLUGINS = "pairscale.plugins"  # entry-point group of other distributions


@cache
def load_members(package: str) -> None:
    """Import the modules of a package, then all plug-ins. Raises as `load_plugins`."""
    load_modules(package)
    load_plugins()


def load_modules(package: str) -> None:
    """Import the modules of a package."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)


@cache
def load_plugins() -> None:
    """Import the modules of the entry-point group PLUGINS, which register themselves; ConfigError for any failure."""
    for entry in entry_points(group=PLUGINS):
        try:
            entry.load()
        except Exception as error:
            of = f" of {entry.dist.name}" if entry.dist else ""
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConfigError(
                f"plugin {entry.name} = {entry.value}{of}: cannot be imported ({reason}); mend or uninstall it"
            ) from error


def whose_fault(error: BaseException) -> str:
    """Return whose code an unexpected error is a fault of: that of a plug-in if the error passed through it.

    Where plug-ins are installed, and none was at work, theirs may have returned what our own cannot use.
    """
    entries = entry_points(group=PLUGINS)
    files = {file for entry in entries if (file := _file_of(entry.module))}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if any(path == file or (file.name == "__init__.py" and file.parent in path.parents) for file in files):
            return f"a fault of the plug-in: {path}, line {frame.lineno}"
    names = sorted({entry.value for entry in entries})
    return f"a fault of pairscale, or of the plug-in {' or '.join(names)}" if names else "a fault of pairscale"


def _file_of(module: str) -> Path | None:
    """Return the file of the package that a module is in, or of the module; None if it has not been imported."""
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    return Path(file) if file else None
