"""The import of Lightning in half the time. The only module that relies on private names of another library.

torchmetrics, which comes with Lightning, imports scipy and transformers if lightning_utilities reports them installed:
2 of 4 CPU seconds, for metrics of texts that training does not use. tests/train/test_lightning_import.py fails if
lightning_utilities no longer has the names that are replaced here; Lightning is then imported whole.
"""

import sys
from importlib.metadata import PackageNotFoundError
from typing import Any

HIDDEN = frozenset({"scipy", "transformers"})
REPLACED = ("package_available", "_version")  # names of lightning_utilities.core.imports (0.15.3)


def import_lightning() -> None:
    """Import Lightning without scipy and transformers (so without BERTScore), unless they are imported already."""
    from lightning_utilities.core import imports

    hidden = HIDDEN - set(sys.modules)
    names = vars(imports)
    originals: dict[str, Any] = {name: names[name] for name in REPLACED if name in names}
    if "lightning" in sys.modules or len(originals) < len(REPLACED):
        return

    def package_available(name: str) -> bool:
        return name not in hidden and originals["package_available"](name)

    def version(name: str) -> str:
        if name in hidden:
            raise PackageNotFoundError(name)
        return str(originals["_version"](name))

    names.update(package_available=package_available, _version=version)
    try:
        import lightning  # noqa: F401
    finally:
        names.update(originals)
        imports.module_available.cache_clear()
