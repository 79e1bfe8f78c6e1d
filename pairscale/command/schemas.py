"""Hydra's store of schemas, which the configuration classes of the rooms put themselves into."""

from hydra.core.config_store import ConfigStore


def store_schemas(group: str | None, **schemas: type) -> None:
    """Give Hydra the dataclasses of a configuration group by the names that YAML files have under `defaults`."""
    for name, schema in schemas.items():
        ConfigStore.instance().store(group=group, name=name, node=schema)
