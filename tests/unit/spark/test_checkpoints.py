"""The batches of a checkpoint."""

import json
from pathlib import Path

import pytest

from headrace.spark.checkpoints import (
    CheckpointDamaged,
    Ranges,
    ends,
    has_state,
    newest_commit,
    newest_plan,
    ranges,
    tables_read,
)


def plan(checkpoint: Path, batch: int, *sources: object) -> None:
    directory = checkpoint / "offsets"
    directory.mkdir(parents=True, exist_ok=True)
    lines = [source if isinstance(source, str) else json.dumps(source) for source in sources]
    (directory / str(batch)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *lines]))


def test_a_new_checkpoint_has_no_batches(tmp_path: Path) -> None:
    assert (newest_plan(tmp_path), newest_commit(tmp_path)) == (-1, -1)


def test_the_newest_batch_is_the_largest_number_and_not_a_hidden_file(tmp_path: Path) -> None:
    for batch in (2, 9, 10):
        plan(tmp_path, batch, {"orders": {"0": batch}})
    (tmp_path / "offsets" / ".11.crc").write_text("")
    assert newest_plan(tmp_path) == 10


def test_a_query_that_remembers_rows_has_a_folder_of_them(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"orders": {"0": 1}})
    assert not has_state(tmp_path)
    (tmp_path / "state" / "0").mkdir(parents=True)
    assert has_state(tmp_path)


def test_a_batch_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"orders": {"0": 5, "1": 7}})
    plan(tmp_path, 1, {"orders": {"0": 9, "1": 7}})
    assert ranges(tmp_path, 1) == Ranges(offsets={"orders": {"0": (5, 9), "1": (7, 7)}})


def test_the_first_batch_begins_at_the_starts(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"orders": {"0": 50}})
    assert ranges(tmp_path, 0, {"orders": {"0": 40}}).offsets == {"orders": {"0": (40, 50)}}


def test_the_furthest_of_two_readers_of_a_topic_counts(tmp_path: Path) -> None:
    """So each record belongs to one batch, even if another reader reads it again."""
    plan(tmp_path, 0, {"orders": {"0": 5}}, {"orders": {"0": 3}})
    plan(tmp_path, 1, {"orders": {"0": 7}}, {"orders": {"0": 9}})
    assert ranges(tmp_path, 0).offsets == {"orders": {"0": (0, 5)}}
    assert ranges(tmp_path, 1).offsets == {"orders": {"0": (5, 9)}}


def test_versions_of_tables_are_separate_from_offsets(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"table": "raw.orders", "version": 3}, {"payments": {"0": 2}})
    found = ranges(tmp_path, 0)
    assert found == Ranges(offsets={"payments": {"0": (0, 2)}}, inputs={"raw.orders": (0, 3)})


def test_end_offsets_of_a_batch_need_no_start_offsets(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"table": "raw.orders", "version": 3}, {"payments": {"0": 2, "1": 5}})
    assert ranges(tmp_path, 0).ends() == {"payments": {"0": 2, "1": 5}}


def test_tables_of_one_name_are_distinguished_by_their_ids(tmp_path: Path) -> None:
    """The slowest of several readers of a table counts: each continues at its own position."""
    positions = [("a", 7), ("b", 2), ("a", 5)]
    sources = [{"table": "raw.orders", "id": one, "version": at} for one, at in positions]
    plan(tmp_path, 0, *sources)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    assert tables_read(tmp_path) == {"a": 5, "b": 2}


def test_a_topic_may_be_called_table(tmp_path: Path) -> None:
    plan(tmp_path, 0, {"table": {"0": 4}})
    assert ranges(tmp_path, 0).offsets == {"table": {"0": (0, 4)}}


def test_a_source_that_has_not_begun_has_no_offsets(tmp_path: Path) -> None:
    plan(tmp_path, 0, "-", {"orders": {"0": 1}})
    assert ends(tmp_path, 0) == [{}, {"orders": {"0": 1}}]


def test_a_damaged_entry_is_named(tmp_path: Path) -> None:
    plan(tmp_path, 0, "{torn")
    with pytest.raises(CheckpointDamaged, match="offsets/0"):
        ends(tmp_path, 0)
