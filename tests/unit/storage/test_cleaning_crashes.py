"""A sudden death at any moment of cleaning loses no record and revives none.

The process dies before each single change of a file, one run for each; once also in the middle
of a write. What is on disk then is opened by ordinary recovery.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.protocol.batches import Record, build_batch
from headrace.runtime import files
from headrace.storage.appending import append_as_leader
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.producer_state import Origin
from headrace.storage.recovery import load_log
from tests.builders.compacted_logs import (
    COMPACTED,
    NOW,
    PARTITION,
    clean,
    new_log,
    record,
    records_in,
    write,
)

CONFIG = msgspec.structs.replace(COMPACTED, segment_bytes=900)
CHANGES = (
    "create",
    "create_empty",
    "ftruncate",
    "pwrite",
    "rename",
    "replace",
    "set_modified_ms",
    "truncate",
    "unlink",
    "write",
)
DAY = 24 * 3_600_000


class SuddenDeathError(BaseException):
    """No code catches it, as no program catches a SIGKILL."""


class Mortal:
    """Lets so many changes of files happen, and none after them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, changes_left: int, *, torn: bool) -> None:
        self.changes_left = changes_left
        self.died = False
        self._torn = torn
        self._depth = 0
        for name in CHANGES:
            monkeypatch.setattr(files, name, self._wrapped(getattr(files, name)))
        monkeypatch.setattr(files, "fsync", lambda fd: None)

    def _wrapped(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def mortal(*args: Any, **options: Any) -> Any:
            if self._depth == 0:
                self._live_or_die(change, args)
            self._depth += 1
            try:
                return change(*args, **options)
            finally:
                self._depth -= 1

        return mortal

    def _live_or_die(self, change: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self.changes_left == 0 and not self.died:
            self.died = True
            if self._torn and change.__name__ == "pwrite":
                change(args[0], bytes(args[1])[: len(args[1]) // 2], args[2])
        if self.died:
            raise SuddenDeathError
        self.changes_left -= 1


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of many small segments with everything in it that compaction treats differently."""
    directory = tmp_path_factory.mktemp("template")
    log = new_log(directory, CONFIG)
    for at in range(5):
        write(log, [(f"k{i}", f"v{at}") for i in range(4)], NOW - 2 * DAY)
        write(log, [(f"only {at}", "x"), ("gone", None if at == 3 else f"v{at}")])
        in_transaction(log, at, commit=at % 2 == 0)
        log.roll()
    write(log, [("k0", "active")])
    log.close()
    return directory


def in_transaction(log: Log, at: int, *, commit: bool) -> None:
    identity: dict[str, Any] = {
        "producer_id": 100 + at % 3,
        "producer_epoch": at,
        "transactional": True,
    }
    value = f"committed {at}" if commit else f"aborted {at}"
    data = build_batch(
        [record(0, f"t{at % 2}", value), record(1, "t", value)], base_sequence=0, **identity
    )
    append_as_leader(log, memoryview(data), 0, NOW, transaction_version=0)
    kind = b"\x00\x00\x00\x01" if commit else b"\x00\x00\x00\x00"
    end = build_batch([Record(0, NOW, kind, b"\x00\x00\x00\x00\x00\x01")], control=True, **identity)
    append_as_leader(log, memoryview(end), 0, NOW, Origin.COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)


def opened(directory: Path) -> Log:
    """All segments but the active one are below the recovery point and are not scanned."""
    log = load_log(
        PARTITION, str(directory / "tables-0"), CONFIG, clean=False, recovery_point=1 << 40
    )
    log.advance_high_watermark(log.log_end_offset)
    return log


def committed_state(log: Log) -> dict[bytes, bytes]:
    """Return the records that a read_committed consumer reads from the start of the log."""
    aborted = log.aborted_transactions(0, log.log_end_offset)
    state: dict[bytes, bytes] = {}
    for item in records_in(log):
        if item.key is None or item.key[:2] == b"\x00\x00":
            continue
        if item.value is not None and item.value.startswith(b"aborted"):
            assert any(one.first_offset <= item.offset < one.last_offset for one in aborted)
        elif item.value is None:
            state.pop(item.key, None)
        else:
            state[item.key] = item.value
    return state


def facts(items: list[Record]) -> set[tuple[int, int, bytes | None, bytes | None]]:
    return {(item.offset, item.timestamp, item.key, item.value) for item in items}


def deaths(
    template: Path, directory: Path, clean_after_restart: Callable[[Log], None], *, torn: bool
) -> Iterator[Log]:
    """The logs that are found after dying before the first change, the second, and so on."""
    for changes in range(10_000):
        place = directory / str(changes)
        shutil.copytree(template, place)
        log = opened(place)
        with pytest.MonkeyPatch.context() as monkeypatch:
            mortal = Mortal(monkeypatch, changes, torn=torn)
            with suppress(SuddenDeathError):
                clean_after_restart(log)
        yield opened(place)
        shutil.rmtree(place)
        if not mortal.died:
            return
    raise AssertionError("cleaning never came to an end")


def clean_once(log: Log) -> None:
    clean(log)


def clean_twice(log: Log) -> None:
    """The second time the tombstones and markers go, too."""
    clean(log)
    log.producers.entries.clear()
    write(log, [("late", "x")])
    log.roll()
    clean(log, NOW + 2 * DAY)


@pytest.mark.parametrize(("rounds", "torn"), [(clean_once, True), (clean_twice, False)])
def test_any_moment_of_death_leaves_the_same_state(
    template: Path, tmp_path: Path, rounds: Callable[[Log], None], torn: bool
) -> None:
    shutil.copytree(template, tmp_path / "before")
    before = opened(tmp_path / "before")
    state = committed_state(before)
    written = facts(records_in(before))
    count = 0
    for log in deaths(template, tmp_path, rounds, torn=torn):
        count += 1
        found = records_in(log)
        offsets = [item.offset for item in found]
        assert offsets == sorted(set(offsets))
        now = committed_state(log)
        now.pop(b"late", None)
        assert now == state
        assert {fact for fact in facts(found) if fact[2] != b"late"} <= written
        names = [path.name for path in Path(log.directory).iterdir()]
        assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert count > 50


def test_cleaning_after_a_death_ends_where_it_would_have_ended(
    template: Path, tmp_path: Path
) -> None:
    shutil.copytree(template, tmp_path / "whole")
    whole = opened(tmp_path / "whole")
    clean(whole)
    expected = records_in(whole)
    for log in deaths(template, tmp_path, clean_once, torn=False):
        clean(log)
        assert records_in(log) == expected


def test_a_full_disk_ends_only_the_round(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(template, tmp_path / "full")
    log = opened(tmp_path / "full")
    before = records_in(log)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "pwrite", full)
        clean(log)
    assert log.failure is None
    assert records_in(log) == before
    assert not list(Path(log.directory).glob("*.cleaned"))
    assert clean(log)
    assert len(records_in(log)) < len(before)


def test_the_template_has_the_expected_files(template: Path) -> None:
    assert isinstance(CONFIG, LogConfig)
    names = sorted(path.name for path in (template / "tables-0").iterdir())
    assert len([name for name in names if name.endswith(".log")]) == 6
    assert [name for name in names if name.endswith(".txnindex")]
