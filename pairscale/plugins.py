"""Import the modules that register something, in this checkout and in plug-ins from other distributions."""

import traceback
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

from pairscale.errors import ConfigError

PLUGINS = "pairscale.plugins"  # entry-point group of other distributions


@cache
def load_members(package: str) -> None:
    """Import the modules of a package, then all plug-ins. Raises the same errors as `load_plugins`."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    load_plugins()


@cache
def load_plugins() -> None:
    """Import the modules of the entry-point group PLUGINS. Raises ConfigError if one cannot be imported."""
    for entry in entry_points(group=PLUGINS):
        try:
            entry.load()
        except Exception as error:
            source = f" of {entry.dist.name}" if entry.dist else ""
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConfigError(
                f"The plug-in {entry.name} = {entry.value}{source} cannot be imported ({reason}). Fix or uninstall it."
            ) from error


def whose_bug(error: BaseException) -> str:
    """Name the code that an unexpected error comes from. This is a plug-in if the error passed through it.

    If it did not, installed plug-ins are still named, because one may have returned a value that our code cannot use.
    """
    plugins = {entry.module.partition(".")[0]: entry.value for entry in entry_points(group=PLUGINS)}
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").partition(".")[0] in plugins:
            return f"the plug-in, in {frame.f_code.co_filename}, line {line}"
    others = f" or the plug-in {' or '.join(sorted(plugins.values()))}" if plugins else ""
    return f"pairscale{others}"
