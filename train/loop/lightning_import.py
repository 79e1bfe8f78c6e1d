"""Lightning, imported in less than half the time."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from typing import Any


def import_lightning() -> None:
    """Import Lightning, but keep torchmetrics, which comes with it, from importing scipy and transformers: two seconds.

    For processes of our own commands: torchmetrics has no metrics of texts (BERTScore) in them, for good. Who calls
    train_run from Python has all of it. Where lightning_utilities has other names, all is imported.
    """
    from lightning_utilities.core import imports

    hidden = {"scipy", "transformers"} - set(sys.modules)
    known = vars(imports)
    there: dict[str, Any] = {name: known[name] for name in ("package_available", "_version") if name in known}
    if "lightning" in sys.modules or len(there) < 2:
        return

    def package_available(name: str) -> bool:
        return name not in hidden and there["package_available"](name)

    def version(name: str) -> str:
        if name in hidden:
            raise PackageNotFoundError(name)
        return str(there["_version"](name))

    known.update(package_available=package_available, _version=version)
    try:
        import lightning  # noqa: F401
    finally:
        known.update(there)
        imports.module_available.cache_clear()
