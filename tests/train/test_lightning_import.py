"""The import of Lightning that hides packages: the private names that it replaces and restores."""

import subprocess
import sys

import pytest
from lightning_utilities.core import imports

from train.lightning_import import HIDDEN, REPLACED


def test_lightning_utilities_has_the_names_that_are_replaced():
    assert all(callable(getattr(imports, name, None)) for name in REPLACED)
    assert callable(imports.module_available.cache_clear)


@pytest.mark.slow
def test_lightning_is_imported_without_the_hidden_packages_and_the_names_are_restored():
    code = f"""
import sys
import pytest
from lightning_utilities.core import imports
before = [getattr(imports, name) for name in {REPLACED}]
from train.lightning_import import import_lightning
import_lightning()
assert "lightning" in sys.modules and not {set(HIDDEN)} & set(sys.modules)
assert [getattr(imports, name) for name in {REPLACED}] == before
assert imports.package_available("scipy")
"""
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)
