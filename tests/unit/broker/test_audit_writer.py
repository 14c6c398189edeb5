"""The writer of the audit log: the file with its rotation, and failures that are reported once."""

import asyncio
import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from headrace.broker.audit_writer import AuditWriter, append_rotated
from headrace.runtime.clock import SystemClock
from headrace.runtime.tasks import Tasks
from headrace.security.acls import Operation, ResourceType
from headrace.security.authorizer import Reason, Verdict
from headrace.security.principals import Caller, Principal
from headrace.settings.broker import BrokerSettings

DENIED = Verdict(False, Reason.NO_RULE)


def writer_of(path: Path, **settings: Any) -> AuditWriter:
    tasks = Tasks(asyncio.get_running_loop())
    return AuditWriter(
        BrokerSettings(headrace_audit_file=str(path), **settings), tasks, SystemClock()
    )


def deny(writer: AuditWriter, times: int = 1) -> None:
    caller = Caller(Principal("User", "ada"), "10.0.0.7")
    for _ in range(times):
        writer.events.decided(caller, Operation.READ, ResourceType.TOPIC, "orders", DENIED)


async def test_events_are_appended_as_lines_that_only_the_owner_may_read(tmp_path: Path) -> None:
    """SEC-9"""
    path = tmp_path / "audit.log"
    writer = writer_of(path)
    deny(writer, 2)
    await writer.write()
    deny(writer)
    await writer.finish()
    lines = [json.decode(line) for line in path.read_bytes().splitlines()]
    assert [one["resource"] for one in lines] == ["orders"] * 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert writer.events.counts.written == 3


def test_a_full_file_is_renamed_and_the_one_before_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for number in range(4):
        append_rotated(str(path), b"%d" % number * 60, 100)
    assert path.read_bytes() == b"3" * 60
    assert Path(f"{path}.1").read_bytes() == b"2" * 60
    assert len(list(tmp_path.iterdir())) == 2


async def test_failures_are_counted_and_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-9"""
    caplog.set_level(logging.INFO, "headrace")
    path = tmp_path / "missing" / "audit.log"
    writer = writer_of(path)
    for _ in range(3):
        deny(writer)
        await writer.write()
    assert writer.events.counts.lost == 3
    path.parent.mkdir()
    deny(writer)
    await writer.write()
    assert [record.getMessage() for record in caplog.records] == [
        "audit log not written, its events are lost",
        "audit log written again",
    ]


async def test_dropped_events_are_reported_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = writer_of(tmp_path / "audit.log", headrace_audit_events_per_second=1)
    for _ in range(2):
        deny(writer, 50)
        await writer.write()
    (record,) = caplog.records
    assert record.getMessage() == "audit events dropped, too many of one principal"
