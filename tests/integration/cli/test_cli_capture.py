"""Topics into files, also when the capture is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from headrace.capture.capturing import Capture, TopicRecreated
from headrace.capture.reading import PartitionReader
from headrace.capture.windows import Limits
from tests.clients.librdkafka import AN_HOUR_AGO, Sent, create_topic, numbered, produce, producer
from tests.integration.cli.commands import Done, headrace, ok, run
from tests.integration.conftest import StartNode
from tests.processes.nodes import Node, eventually

ROUNDS = 20


def files_of(directory: Path, suffix: str) -> list[Path]:
    return sorted(directory.rglob(f"[0-9]*.{suffix}"))


def rows_in(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return [dict(row) for row in fastavro.reader(file) if isinstance(row, dict)]
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def rows_of(directory: Path, suffix: str) -> list[dict[str, Any]]:
    return [row for path in files_of(directory, suffix) for row in rows_in(path)]


def unlike(count: int, *, size: int) -> list[Sent]:
    """Records that no compression makes smaller."""
    return [Sent(os.urandom(size)) for _ in range(count)]


def await_files(directory: Path, suffix: str, count: int) -> None:
    eventually(lambda: len(files_of(directory, suffix)) >= count)


def once(node: Node, topic: str, directory: Path, *more: str) -> Done:
    return ok(node, "capture", topic, "--to", str(directory), "--once", *more)


@contextmanager
def capturing(
    node: Node, topic: str, directory: Path, *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A capture in the background; killed at the end if it still runs."""
    command = [sys.executable, "-m", "headrace.cli.main", "capture", topic, "--to", str(directory)]
    process = subprocess.Popen(
        [*command, *more],
        env={**os.environ, "HEADRACE_BOOTSTRAP": node.address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


@pytest.mark.parametrize("suffix", ["avro", "parquet"])
def test_a_topic_becomes_files_that_hold_every_record_whole(
    node: Node, tmp_path: Path, suffix: str
) -> None:
    """CLD-1, SCH-5: capture to Avro container files and to Parquet."""
    topic = create_topic(node)
    sent = [
        Sent(b"v1", b"k1", (("h", b"x"), ("h", None)), AN_HOUR_AGO),
        Sent(None, b"k2", (), AN_HOUR_AGO + 1),
        Sent(b"\xff\x00", None, (), AN_HOUR_AGO + 2),
    ]
    produce(node, topic, sent)
    once(node, topic, tmp_path, "--format", suffix)
    rows = rows_of(tmp_path, suffix)
    assert [(row["key"], row["value"], row["offset"]) for row in rows] == [
        (b"k1", b"v1", 0),
        (b"k2", None, 1),
        (None, b"\xff\x00", 2),
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]
    assert {row["topic"] for row in rows} == {topic}
    assert rows[2]["timestamp"].timestamp() * 1000 == pytest.approx(AN_HOUR_AGO + 2)


def test_files_are_grouped_by_partition_date_and_hour_of_their_records(
    node: Node, tmp_path: Path
) -> None:
    topic = create_topic(node)
    hours = [AN_HOUR_AGO, AN_HOUR_AGO - 3 * 3_600_000, AN_HOUR_AGO + 3_600_000]
    produce(node, topic, [Sent(b"x", timestamp=moment) for moment in hours])
    once(node, topic, tmp_path)
    early, late = (
        time.strftime("%Y-%m-%d/%H", time.gmtime(moment / 1000)) for moment in (hours[0], hours[2])
    )
    names = sorted(str(path.relative_to(tmp_path)) for path in files_of(tmp_path, "avro"))
    assert names == sorted(
        [
            f"{topic}/0/{early}/00000000000000000000-00000000000000000001.avro",
            f"{topic}/0/{late}/00000000000000000002-00000000000000000002.avro",
        ]
    )


def test_a_second_run_writes_only_new_records(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node, partitions=3)
    for partition in range(3):
        produce(node, topic, numbered(10), partition=partition)
    once(node, topic, tmp_path)
    produce(node, topic, numbered(5), partition=1)
    done = once(node, topic, tmp_path)
    assert len(done.out.splitlines()) == 1
    assert "5 records" in done.out
    assert done.err == ""
    counted = Counter((row["partition"], row["offset"]) for row in rows_of(tmp_path, "avro"))
    assert len(counted) == 35
    assert set(counted.values()) == {1}


@pytest.mark.parametrize("writes_empty", [False, True])
def test_every_record_is_in_one_file_under_clock_jumps(
    node: Node, tmp_path: Path, writes_empty: bool
) -> None:
    """The clock of the machine and those of the producers: days ahead, and days back again."""
    topic = create_topic(node, partitions=2)
    rng, now_ms, rounds = random.Random(7), [AN_HOUR_AGO], 0

    def is_stopped() -> bool:
        """Before each look at the topic: some records, and another time of day."""
        nonlocal rounds
        rounds += 1
        now_ms[0] += rng.choice([-72, -1, 1, 72]) * 3_600_000 + rng.randrange(90_000)
        moment = AN_HOUR_AGO - rng.randrange(100) * 3_600_000
        sent = [Sent(b"x", timestamp=moment + n) for n in range(5)]
        produce(node, topic, sent, partition=rounds % 2)
        return rounds > ROUNDS

    reader = PartitionReader(node.address, topic, f"capture-{topic}", {})
    try:
        Capture(
            reader,
            tmp_path,
            "avro",
            Limits(60_000, 1 << 20),
            report=lambda _: None,
            done=lambda _: None,
            writes_empty=writes_empty,
            clock_ms=lambda: now_ms[0],
        ).run(once=False, is_stopped=is_stopped)
    finally:
        reader.close()
    once(node, topic, tmp_path)
    counted = Counter((row["partition"], row["offset"]) for row in rows_of(tmp_path, "avro"))
    assert sum(counted.values()) == len(counted) == 5 * rounds
    assert len(files_of(tmp_path, "avro")) > 2


def test_a_topic_that_was_made_again_is_not_taken_for_the_old_one(
    node: Node, tmp_path: Path
) -> None:
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    once(node, topic, tmp_path)
    ok(node, "topics", "delete", topic, "--yes")
    ok(node, "topics", "create", topic)
    produce(node, topic, numbered(20))
    refused = headrace(node, "capture", topic, "--to", str(tmp_path), "--once")
    assert refused.code != 0
    assert f"topic '{topic}' was recreated" in refused.err
    assert len(rows_of(tmp_path, "avro")) == 10
    once(node, topic, tmp_path / "anew")
    assert len(rows_of(tmp_path / "anew", "avro")) == 20


def test_a_truncated_log_is_not_continued(start_node: StartNode, tmp_path: Path) -> None:
    """Records after the cut reuse offsets that the files have for other records."""
    node, files = start_node(), tmp_path / "files"
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    node.stop()
    copytree(node.data, tmp_path / "backup")
    node.start()
    produce(node, topic, numbered(10))
    once(node, topic, files)
    node.stop()
    rmtree(node.data)
    copytree(tmp_path / "backup", node.data)
    node.start()
    produce(node, topic, numbered(5))
    refused = headrace(node, "capture", topic, "--to", str(files), "--once")
    assert refused.code != 0
    assert f"{topic}-0 was captured up to offset 19 but ends at 15" in refused.err
    assert len(rows_of(files, "avro")) == 20
    once(node, topic, tmp_path / "anew", "--group", "another")
    assert len(rows_of(tmp_path / "anew", "avro")) == 15


def test_records_of_a_deleted_topic_are_kept(node: Node, tmp_path: Path) -> None:
    """The records cannot be read again, so open files are completed before the capture ends."""
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    reader = PartitionReader(node.address, topic, f"capture-{topic}", {})
    capture = Capture(
        reader,
        tmp_path,
        "avro",
        Limits(3_600_000, 1 << 20),
        report=lambda _: None,
        done=lambda _: None,
    )

    def is_stopped() -> bool:
        """Recreate the topic when all records are read and no file is complete; never stop."""
        if sum(one.records for one in capture._partitions.values()) == 10:
            ok(node, "topics", "delete", topic, "--yes")
            ok(node, "topics", "create", topic)
            capture._begin_new_partitions()
        return False

    try:
        with pytest.raises(TopicRecreated):
            capture.run(once=False, is_stopped=is_stopped)
    finally:
        reader.close()
    assert len(rows_of(tmp_path, "avro")) == 10


def test_the_group_shows_how_far_the_capture_is(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    once(node, topic, tmp_path, "--group", f"files-of-{topic}")
    (described,) = ok(node, "groups", "describe", f"files-of-{topic}", "--json").document
    assert [part["committed"] for part in described["partitions"]] == [10]


def test_a_run_without_new_records_reports_so(node: Node, topic: str, tmp_path: Path) -> None:
    produce(node, topic, numbered(3))
    first, again = once(node, topic, tmp_path), once(node, topic, tmp_path)
    assert first.err == again.out == ""
    assert again.err == f"headrace: {topic} has nothing new to capture\n"


def test_moved_files_are_reported_and_not_written_again(node: Node, tmp_path: Path) -> None:
    """CLD-1: also where they never were, since a second copy needs a group of its own."""
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    first = once(node, topic, tmp_path)
    for path in files_of(tmp_path, "avro"):
        path.unlink()
    again, copy = once(node, topic, tmp_path), once(node, topic, tmp_path / "copy")
    assert (first.err, again.out, copy.out) == ("", "", "")
    assert "another --group" in again.err
    assert "another --group" in copy.err
    assert "another --group" not in once(node, topic, tmp_path / "copy", "--group", topic).err
    assert len(rows_of(tmp_path / "copy", "avro")) == 10


@pytest.mark.parametrize("suffix", ["avro", "parquet"])
def test_a_file_ends_when_it_is_large_enough(node: Node, tmp_path: Path, suffix: str) -> None:
    topic = create_topic(node)
    records = unlike(300, size=10_000)
    produce(node, topic, records)
    once(node, topic, tmp_path, "--format", suffix, "--size", "1MB")
    assert len(files_of(tmp_path, suffix)) in (3, 4)
    assert [row["value"] for row in rows_of(tmp_path, suffix)] == [one.value for one in records]


def test_a_file_ends_with_its_window_and_a_stop_completes_the_last(
    node: Node, tmp_path: Path
) -> None:
    topic = create_topic(node)
    produce(node, topic, numbered(3))
    with capturing(node, topic, tmp_path, "--window", "200ms") as process:
        eventually(lambda: len(rows_of(tmp_path, "avro")) == 3)
    with capturing(node, topic, tmp_path, "--window", "1h") as process:
        produce(node, topic, numbered(2))
        eventually(lambda: list(tmp_path.rglob(".*.tmp")))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert len(rows_of(tmp_path, "avro")) == 5


def test_a_silent_window_is_a_file_only_if_asked_for(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node)
    with capturing(node, topic, tmp_path, "--window", "200ms", "--empty"):
        eventually(lambda: list(tmp_path.rglob("*-empty-*.avro")))
    assert rows_of(tmp_path, "avro") == []
    assert once(node, topic, tmp_path / "other").out == ""


@pytest.mark.parametrize("suffix", ["avro", "parquet"])
def test_killed_at_any_moment_no_record_is_lost_or_there_twice(
    node: Node, tmp_path: Path, suffix: str
) -> None:
    """CLD-1: capture is exactly once into files."""
    topic = create_topic(node, partitions=2)
    options = ("--format", suffix, "--window", "100ms", "--size", "20KB")
    total = 0
    for round_ in range(4):
        files = len(files_of(tmp_path, suffix))
        with capturing(node, topic, tmp_path, *options) as process:
            for partition in range(2):
                produce(node, topic, unlike(2_000, size=50), partition=partition)
            total += 4_000
            await_files(tmp_path, suffix, files + 1 + round_)
            process.kill()
            process.wait(timeout=30)
    torn = list(tmp_path.rglob(".*.tmp"))
    once(node, topic, tmp_path, "--format", suffix)
    assert list(tmp_path.rglob(".*.tmp")) == [], f"there were {len(torn)}"
    counted = Counter((row["partition"], row["offset"]) for row in rows_of(tmp_path, suffix))
    assert len(counted) == total
    assert set(counted.values()) == {1}


def test_two_captures_of_one_topic_into_one_directory_are_refused(
    node: Node, topic: str, tmp_path: Path
) -> None:
    produce(node, topic, numbered(1))
    with capturing(node, topic, tmp_path, "--window", "100ms"):
        eventually(lambda: files_of(tmp_path, "avro"))
        done = headrace(node, "capture", topic, "--to", str(tmp_path), "--once")
    assert done.code == 1
    assert "another capture writes to" in done.err


def test_records_that_retention_took_are_reported(node: Node, tmp_path: Path) -> None:
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    once(node, topic, tmp_path)
    produce(node, topic, numbered(10))
    ok(node, "records", "delete", topic, "--partition", "0", "--before", "15", "--yes")
    done = once(node, topic, tmp_path)
    assert "offsets 10 to 14 were deleted by retention" in done.err
    assert [row["offset"] for row in rows_of(tmp_path, "avro")] == [*range(10), *range(15, 20)]


def test_aborted_transactions_are_not_captured(node: Node, topic: str, tmp_path: Path) -> None:
    client = producer(node, transactional_id=f"capture-{topic}")
    client.init_transactions()
    for value, end in ((b"kept", client.commit_transaction), (b"gone", client.abort_transaction)):
        client.begin_transaction()
        client.produce(topic, value)
        client.flush()
        end()
    once(node, topic, tmp_path)
    assert [row["value"] for row in rows_of(tmp_path, "avro")] == [b"kept"]


def test_an_open_transaction_is_not_taken_for_a_log_that_was_cut(
    node: Node, topic: str, tmp_path: Path
) -> None:
    """The committed records end before the files of a capture that read uncommitted ones."""
    client = producer(node, transactional_id=f"capture-{topic}")
    client.init_transactions()
    client.begin_transaction()
    for _ in range(5):
        client.produce(topic, b"open")
    client.flush()
    once(node, topic, tmp_path, "--property", "isolation.level=read_uncommitted")
    with capturing(node, topic, tmp_path) as process:
        client.produce(topic, b"more")
        client.commit_transaction()
        eventually(lambda: list(tmp_path.rglob(".*.tmp")))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert [row["offset"] for row in rows_of(tmp_path, "avro")] == [*range(6)]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nobody", "--to", "DIR", "--once"], "nobody"),
        (["TOPIC", "--to", "FILE", "--once"], "is a file"),
        (["TOPIC", "--to", "FILE/below", "--once"], "cannot write to"),
        (["TOPIC", "--to", "DIR", "--size", "none"], "is not a size"),
        (["TOPIC", "--to", "DIR", "--window", "soon"], "is not a duration"),
        (["TOPIC", "--to", "DIR", "--format", "csv"], "csv"),
    ],
)
def test_invalid_arguments_are_refused_with_the_reason_and_leave_no_files(
    node: Node, topic: str, tmp_path: Path, arguments: list[str], why: str
) -> None:
    file = tmp_path / "file"
    file.write_text("here")
    words = [
        word.replace("FILE", str(file)).replace("DIR", str(tmp_path)).replace("TOPIC", topic)
        for word in arguments
    ]
    done = headrace(node, "capture", *words)
    assert done.code != 0
    assert why in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_an_error_and_the_next_run_continues(
    node: Node, topic: str, tmp_path: Path
) -> None:
    produce(node, topic, unlike(100, size=10_000))
    limited = [
        "sh",
        "-c",
        'ulimit -f 200; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "headrace.cli.main",
    ]
    done = subprocess.run(
        [*limited, "capture", topic, "--to", str(tmp_path), "--once"],
        env={**os.environ, "HEADRACE_BOOTSTRAP": node.address},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"cannot write below" in done.stderr
    assert files_of(tmp_path, "avro") == list(tmp_path.rglob(".*.tmp")) == []
    once(node, topic, tmp_path)
    assert len(rows_of(tmp_path, "avro")) == 100


def test_an_unreachable_broker_is_reported(tmp_path: Path) -> None:
    done = run("127.0.0.1:1", "capture", "t", "--to", str(tmp_path), "--once")
    assert done.code == 1
    assert "127.0.0.1:1" in done.err
