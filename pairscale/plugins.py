"""Members of registries: modules of this checkout, and plug-ins of other distributions, that register when imported."""

import traceback
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

from pairscale.errors import ConfigError

PLUGINS = "pairscale.plugins"  # entry-point group of other distributions


@cache
def load_members(package: str) -> None:
    """Import the modules of a package, then all plug-ins. Raises as `load_plugins`."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    load_plugins()


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
    plugins = {entry.module.partition(".")[0]: entry.value for entry in entry_points(group=PLUGINS)}
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__", "").partition(".")[0] in plugins:
            return f"a fault of the plug-in: {frame.f_code.co_filename}, line {line}"
    others = f", or of the plug-in {' or '.join(sorted(plugins.values()))}" if plugins else ""
    return f"a fault of pairscale{others}"
