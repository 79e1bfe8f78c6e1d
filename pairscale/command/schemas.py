"""Hydra's store of schemas, which the configuration classes of the rooms put themselves into; metadata of fields."""

from typing import Annotated, Any

from hydra.core.config_store import ConfigStore

NOT_IN_DIGEST = {"digest": False}  # a field that cannot change a number: left out of the run's digest
# A field that is newer than the first runs: left out of the digest at its default, so that older runs keep their ids.
ADDED_LATER = {"added": True}
Texts = Annotated[Any, "texts"]  # the type of a field that takes a text or a list of texts: OmegaConf has no such type
Size = Annotated[str, "size"]  # the type of a field for pairscale.sizes.parse_size: 1e6 and 1_000 are read as numbers


def store_schemas(group: str | None, **schemas: Any) -> None:
    """Give Hydra the dataclasses of a configuration group by the names that YAML files have under `defaults`."""
    for name, schema in schemas.items():
        ConfigStore.instance().store(group=group, name=name, node=schema)


def stored_names(group: str) -> set[str]:
    """Return the names in a configuration group that classes stand for instead of files: the methods."""
    names = {str(name).removesuffix(".yaml") for name in ConfigStore.instance().repo.get(group, {})}
    return {name for name in names if not name.endswith("_schema")}
