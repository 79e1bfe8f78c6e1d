"""Members of registries: modules of this checkout, and plug-ins of other distributions, that register when imported."""

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
