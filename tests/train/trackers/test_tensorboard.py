"""TensorBoard: the curves in its event files, each point once even in a resumed run."""

import sys

import pandas as pd
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from eval.tracking import track_scores
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.killed import train_and_kill
from tests.support.small_runs import overrides, trained

pytestmark = pytest.mark.usefixtures("small_text")
MORE = ["recipe.batch=4", "recipe.checkpoint_every=2k", "study=s", "logger=tensorboard"]


@pytest.mark.slow
def test_curves_of_a_resumed_run_equal_metrics_csv(tmp_path):
    arguments = overrides(tmp_path, "lstm", "runs", *MORE)
    folder = train_and_kill(4, arguments)
    (earlier,) = (folder.path / "tensorboard").iterdir()
    earlier.rename(earlier.with_name("events.out.tfevents.9999999999.host.1.0"))  # which sorts last
    trained(compose("train", arguments))
    scores = folder.scores("toy")
    scores.mkdir(parents=True)
    (scores / "items.parquet").write_text("damaged")
    track_scores(folder, compose("eval", [*arguments, "benchmark=toy"]))  # TensorBoard tracks no scores: none are read
    metrics = pd.read_csv(folder.metrics)
    events = EventAccumulator(str(folder.path / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    assert set(events.Tags()["scalars"]) == set(metrics.columns)
    for name in metrics.columns:
        points = {event.step: event.value for event in events.Scalars(name)}
        assert len(points) == len(events.Scalars(name))
        rows = metrics[["words_seen", name]].dropna()
        expected = pd.Series(rows.to_numpy()[:, 1], index=rows.to_numpy()[:, 0]).astype("float32")
        pd.testing.assert_series_equal(pd.Series(points).astype("float32"), expected, check_index_type=False)


def test_a_missing_tensorboard_stops_a_run_before_its_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match="logger=tensorboard: TensorBoard is not installed"):
        trained(compose("train", overrides(tmp_path, "lstm", "runs", *MORE)))
    assert not (tmp_path / "store").exists()
    assert not list(tmp_path.glob("runs/s/*/manifest.json"))
