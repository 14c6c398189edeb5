"""The log's files: created once, read back, damaged ones named."""

from pathlib import Path

import pytest

from headrace.lake.commit_log import (
    AddedFile,
    CommitLog,
    Token,
    additions,
    information,
    removals,
    transaction,
    versions_of,
)
from headrace.lake.data_files import DataFile
from headrace.lake.errors import LakeError, VersionGone
from headrace.lake.lineage import Lineage

NOW_MS = 1_700_000_000_000


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    (tmp_path / "_delta_log").mkdir()
    return CommitLog(tmp_path)


def added(name: str) -> DataFile:
    return DataFile(name, 10, 2, {"day": None}, '{"numRecords":2}', 1)


def test_a_version_is_made_once(log: CommitLog) -> None:
    assert log.write(4, [{"txn": {"appId": "first", "version": 1}}])
    assert not log.write(4, [{"txn": {"appId": "second", "version": 1}}])
    assert log.read(4).tokens == [Token("first", 1)]
    assert [path.name for path in (log.place / "_delta_log").iterdir()] == [f"{4:020}.json"]


def test_a_commit_round_trips(log: CommitLog) -> None:
    lineage = Lineage(pipeline="p", flow="f", offsets={"t": {"0": (3, 9)}}, inputs={"a.b": (1, 2)})
    said = {"operation": "append", "lineage": lineage.document()}
    gone = AddedFile(0, "old.parquet", {"day": "2026-03-01"}, 1, 5)
    log.write(
        0,
        [
            information("WRITE", said, {"mode": "append"}, NOW_MS),
            *transaction(Token("w", 7)),
            *additions([added("day=x/é %.parquet")]),
            *removals([gone], NOW_MS, data_change=False),
        ],
    )
    commit = log.read(0)
    assert commit.lineage == lineage
    assert commit.operation == "append"
    assert commit.tokens == [Token("w", 7)]
    assert commit.added_files() == [AddedFile(0, "day=x/é %.parquet", {"day": None}, 2, 10)]
    assert not commit.removes_rows
    assert commit.timestamp_ms > 0


def test_rewritten_files_are_not_new_rows(log: CommitLog) -> None:
    log.write(0, additions([added("a.parquet")], data_change=False))
    assert log.read(0).added_files() == []


def test_a_missing_version_is_reported_with_advice(log: CommitLog) -> None:
    with pytest.raises(VersionGone, match="a new checkpoint"):
        log.read(3)


def test_a_damaged_commit_is_named(log: CommitLog) -> None:
    (log.place / "_delta_log" / f"{2:020}.json").write_text('{"add": {"path"')
    with pytest.raises(LakeError, match=r"00000002\.json is damaged"):
        log.read(2)


def test_lines_of_other_programs_are_passed_over(log: CommitLog) -> None:
    log.write(0, [{"domainMetadata": {"domain": "x"}}, {"commitInfo": {"operation": "OPTIMIZE"}}])
    commit = log.read(0)
    assert (commit.operation, commit.lineage, commit.adds) == ("OPTIMIZE", None, [])


def test_the_commit_of_a_file_is_found_from_the_newest_backwards(log: CommitLog) -> None:
    label = "part-v2-v3-" + "0" * 32 + ".zstd.parquet"
    log.write(5, additions([added("a"), added("b c")]))
    log.write(6, additions([added("d"), added(label)]))
    found = versions_of(log, {"a", "b c", "d", label, "older"}, 6)
    assert found == {"a": 5, "b c": 5, "d": 6, label: 3, "older": 4}


def test_only_commits_are_versions(log: CommitLog) -> None:
    log.write(2, [])
    log.write(10, [])
    (log.place / "_delta_log" / f"{9:020}.checkpoint.parquet").touch()
    (log.place / "_delta_log" / "_last_checkpoint").write_text('{"version":9,"size":1}')
    assert log.versions() == [2, 10]
    assert log.last_checkpoint() == 9
