"""The needs of a sweep's runs, for launchers: folder, devices, memory, words to train."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from omegaconf import OmegaConf

from eval.config import EvalConfig
from pairscale.command.launchers.jobs import Job, Work
from pairscale.errors import PairscaleError
from pairscale.files import sha256_json
from train.config import RunConfig
from train.lightning_import import import_lightning
from train.loop.device import takes_gpu
from train.runs.folder import RunFolder


def job_of(index: int, overrides: Sequence[str], config: EvalConfig | None, folder: Path | None) -> Job:
    """Return the job of a configuration (None: its values are refused) that works on `folder`."""
    if config is None:
        return Job(index, list(overrides))
    work = work_of(config)
    preloads = work.words > 0 and not config.model.counted
    return Job(index, list(overrides), config, folder, takes_gpu(config), config.trainer.devices, work, preloads)


def work_of(config: RunConfig) -> Work:
    """Return the work of a run; without words if it is trained already."""
    kind = sha256_json(OmegaConf.to_container(OmegaConf.structured(config.model)))
    try:
        folder = RunFolder.of(config)
        words = 0.0 if folder.done else _words(config)
    except PairscaleError:  # a study to be scored, or a damaged folder, which the run itself reports
        return Work(kind)
    return Work(kind, words, lambda: training_seconds(folder)) if words else Work(kind)


def training_seconds(folder: RunFolder) -> float | None:
    """Return the seconds that a run took to train; None if its manifest does not have them."""
    try:
        manifest = folder.read_manifest()
    except PairscaleError:
        return None
    rate, words = manifest.get("words_per_s"), manifest.get("words_seen")
    return words / rate if rate and words else None


def _words(config: RunConfig) -> float:
    budget, words = config.recipe.budget, config.sample.number
    return words if budget is None else budget.words_seen(words)


def memory_of(jobs: Sequence[Job]) -> int:
    """Return the bytes that the largest of `jobs` takes; 0 if unknown, as for models that are not downloaded yet."""
    configs = [job.config for job in jobs if job.config]
    trained = [config for config in configs if config.recipe.trains]
    largest = max((config.model.weight_bytes for config in configs), default=0)  # loading takes no less
    if trained:  # in a process of its own: torch's hundreds of MiB would stay here as long as the sweep takes
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            largest = max(largest, pool.submit(_peak_memory, trained).result())
    return largest


def preload() -> None:
    """Import torch, Lightning and the loop of a training, but not pandas: pyarrow starts a thread when imported."""
    import_lightning()
    import_module("train.loop.training")


def _peak_memory(configs: Sequence[EvalConfig]) -> int:
    from train.estimate import peak_memory

    return peak_memory(configs)
