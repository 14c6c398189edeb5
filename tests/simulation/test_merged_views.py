"""The layers of a merged view step by step, in random orders: every answer is exact."""

from pathlib import Path

import pytest

from headrace.lake.merged_views import merged_rows
from tests.builders.lake_services import ServedLake
from tests.builders.layered_views import VIEW, Layers, as_totals, totals
from tests.builders.seeds import seeds

ANSWERS = 25
SQL = f"SELECT * FROM {VIEW.name}"


@pytest.mark.parametrize("seed", seeds(4))
def test_every_answer_counts_each_covered_record_once(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARC-1: records come late and twice; parts, batch runs and reads are interleaved."""
    layers = Layers(tmp_path, seed, monkeypatch)
    for number in range(ANSWERS):
        layers.step()
        now = layers.lake.layers(VIEW)
        found = as_totals(merged_rows(VIEW, now))
        expected = totals(layers.covered(now.batch_version, now.speed_version))
        assert found == expected, f"answer {number}"


@pytest.mark.parametrize("seed", seeds(3))
def test_every_served_answer_counts_each_covered_record_once(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARC-1: the same by SQL, from tables that DuckDB has loaded and adds rows to."""
    layers = Layers(tmp_path, seed, monkeypatch)
    served = ServedLake(tmp_path)
    try:
        for number in range(ANSWERS):
            layers.step()
            for unit in served.service.refresher.units():
                unit.due_at = 0.0
            served.refresh()
            answer = served.ask(SQL)
            versions = answer.versions[VIEW.batch], answer.versions[VIEW.speed]
            expected = totals(layers.covered(*versions))
            assert as_totals(answer.rows) == expected, f"answer {number}"
    finally:
        served.close()
