"""The folders that Hydra creates, `${output_folder:KIND}` in conf/: by a run's identity, never by the time."""

import tempfile
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from pairscale.command.compose import to_config
from pairscale.command.line import check_whole_sweep
from pairscale.errors import check_name
from train.runs.folder import NO_STUDY, RunFolder

NOWHERE = tempfile.gettempdir()  # Hydra creates it, as it must create some folder, and nothing is written there


def output_folder(kind: str, *, _root_: DictConfig) -> str:
    """Return the folder of a run (`run`), its name (`subdir`), the folder of its study (`sweep`), or NOWHERE (`none`).

    A dry run writes nowhere either. Raises ConfigError for refused values, before Hydra or a launcher creates a folder.
    """
    if kind == "sweep":
        study = str(_root_.study or NO_STUDY)
        for name in study.split("+"):  # the analysis takes several
            check_name("study", name)
        return str(Path(_root_.paths.runs) / study)
    config = to_config(_root_)
    if kind == "none":
        return NOWHERE
    if kind == "run" and config.recipe.trains:
        check_whole_sweep(_root_.hydra)
    folder = RunFolder.of(config).path
    if config.dry_run:
        return NOWHERE
    return folder.name if kind == "subdir" else str(folder)


OmegaConf.register_new_resolver("output_folder", output_folder, replace=True)
