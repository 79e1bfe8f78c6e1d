"""metrics.csv: a run that resumes writes the same file."""

from train.runs.folder import MetricsFile


def test_rows_from_before_the_first_pseudo_perplexity_are_written_again_without_its_columns(tmp_path):
    """A masked run that resumes before its first validation, as when the later checkpoint is damaged."""
    first = MetricsFile(tmp_path / "metrics.csv")
    first.add(10, {"lr": 0.1})
    first.write()
    before = first.path.read_bytes()
    first.add(20, {"valid_pseudo_ppl": 9.0, "valid_pseudo_nats_per_word": 2.0})
    first.write()
    again = MetricsFile(first.path)
    again.forget_after(10)
    again.write()
    assert first.path.read_bytes() == before
