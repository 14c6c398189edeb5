"""Records through standard input and output."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.clients.librdkafka import AN_HOUR_AGO, create_topic, read, read_values, unique_name
from tests.integration.cli.commands import headrace, ok
from tests.integration.conftest import StartNode
from tests.processes.nodes import Node, eventually


def test_lines_become_records_and_lines_again(node: Node, topic: str) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(20_000))
    ok(node, "produce", topic, stdin=lines)
    assert ok(node, "consume", topic, "--from-beginning", "--exit-at-end").out == lines.decode()


def test_keys_headers_and_times_are_kept(node: Node, topic: str) -> None:
    arguments = ["--key-separator", ":", "--header", "a=b", "--timestamp", str(AN_HOUR_AGO)]
    ok(node, "produce", topic, *arguments, "--null-marker", "NULL", stdin=b"k1:v1\nk2:NULL\n")
    first, second = read(node, topic)
    assert (first.key(), first.value(), first.headers()) == (b"k1", b"v1", [("a", b"b")])
    assert first.timestamp()[1] == AN_HOUR_AGO
    assert (second.key(), second.value()) == (b"k2", None)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_written_and_read(node: Node, topic: str, codec: str) -> None:
    """LOG-16: end-to-end compression."""
    # Long enough that even a batch of one line is smaller when compressed; else it is sent plain.
    lines = (" ".join(["same text"] * 50) + "\n") * 1000
    ok(node, "produce", topic, "--compression", codec, stdin=lines.encode())
    assert ok(node, "consume", topic, "-o", "0", "-e").out == lines
    shown = ok(node, "records", "show", topic, "0", "0", "--json").document
    assert shown["batch"]["codec"] == codec


def test_a_copy_through_json_is_exact(node: Node) -> None:
    source = create_topic(node, partitions=2)
    target = create_topic(node, partitions=2)
    ok(node, "produce", source, "-K", ":", "-H", "h=1", stdin=b"a:1\nb:\xff\nc:3\n")
    lines = ok(node, "consume", source, "--from-beginning", "-e", "--json").out
    ok(node, "produce", target, "--from-json", stdin=lines.encode())
    copied = ok(node, "consume", target, "--from-beginning", "-e", "--json").out
    assert sorted(copied.replace(target, source).splitlines()) == sorted(lines.splitlines())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--from-beginning", "--count", "2"], "0\n1\n"),
        (["--offset", "7", "-e"], "7\n8\n9\n"),
        (["--offset", "-2", "-e"], "8\n9\n"),
        (
            ["--offset", "earliest", "-e", "--format", "%o=%v,"],
            ",".join(f"{n}={n}" for n in range(10)) + ",",
        ),
        (["--offset", "latest", "--timeout", "0.3"], ""),
    ],
)
def test_reading_begins_and_ends_at_the_given_offsets(
    node: Node, topic: str, arguments: list[str], expected: str
) -> None:
    """LOG-13: seek to any offset, start of log, end."""
    ok(node, "produce", topic, stdin=b"".join(b"%d\n" % number for number in range(10)))
    assert ok(node, "consume", topic, *arguments).out == expected


def test_a_group_continues_at_its_committed_offset(node: Node, topic: str) -> None:
    """CON-1, CON-2: a member of a group commits what it has written."""
    group = unique_name("readers")
    ok(node, "produce", topic, stdin=b"1\n2\n3\n")
    words = ("consume", topic, "--group", group, "--from-beginning")
    assert ok(node, *words, "--count", "2").out == "1\n2\n"
    assert ok(node, *words, "--exit-at-end").out == "3\n"
    (described,) = ok(node, "groups", "describe", group, "--json").document
    assert [part["committed"] for part in described["partitions"]] == [3]


def test_reading_begins_at_a_time(node: Node, topic: str) -> None:
    """LOG-13: by time."""
    for age, value in (("2h", b"old"), ("1h", b"new")):
        ok(node, "produce", topic, "-T", age, stdin=value)
    assert ok(node, "consume", topic, "--from-time", "90m", "-e").out == "new\n"
    assert ok(node, "consume", topic, "--from-time", "2100-01-01T00:00:00Z", "-e").out == ""


def test_too_few_records_are_an_error(node: Node, topic: str) -> None:
    ok(node, "produce", topic, stdin=b"only\n")
    done = headrace(node, "consume", topic, "-o", "0", "--count", "2", "--timeout", "0.5")
    assert (done.code, done.out) == (1, "only\n")
    assert done.err == "headrace: 1 of 2 records arrived\n"


def test_a_missing_offset_is_reported(node: Node, topic: str) -> None:
    done = headrace(node, "consume", topic, "--offset", "50")
    assert done.err == f"headrace: {topic}-0 has offsets 0 to 0, not 50\n"


def test_new_records_are_written_as_they_come(node: Node, topic: str) -> None:
    command = [sys.executable, "-m", "headrace.cli.main", "consume", topic, "-o", "0"]
    with subprocess.Popen([*command, "-b", node.address], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        ok(node, "produce", topic, stdin=b"first\n")
        assert reader.stdout.readline() == b"first\n"
        ok(node, "produce", topic, stdin=b"second\n")
        assert reader.stdout.readline() == b"second\n"
        reader.terminate()


def test_a_reader_that_leaves_ends_the_command_quietly(node: Node, topic: str) -> None:
    ok(node, "produce", topic, stdin=b"x\n" * 50_000)
    command = f"{sys.executable} -m headrace.cli.main consume {topic} -o 0 -b {node.address}"
    done = subprocess.run(
        f"{command} | head -n 1", shell=True, capture_output=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (b"x\n", b"")


@pytest.mark.parametrize(("command", "closed"), [("produce", "<&-"), ("consume -o 0 -e", ">&-")])
def test_commands_end_quietly_with_closed_standard_streams(
    node: Node, topic: str, command: str, closed: str
) -> None:
    line = f"{sys.executable} -m headrace.cli.main {command} {topic} -b {node.address} {closed}"
    done = subprocess.run(line, shell=True, capture_output=True, timeout=60, check=False)
    confirmed = f"0 records delivered to {topic}\n" if command == "produce" else ""
    assert (done.returncode, done.stderr.decode()) == (0, confirmed)


def test_a_partition_is_chosen(node: Node) -> None:
    topic = create_topic(node, partitions=3)
    ok(node, "produce", topic, "--partition", "2", stdin=b"here\n")
    assert read_values(node, topic, partition=2) == [b"here"]
    assert ok(node, "consume", topic, "-p", "2", "-o", "0", "-e", "-f", "%p").out == "2"
    done = headrace(node, "consume", topic, "-p", "7", "-e")
    assert done.err == f"headrace: {topic} has no partition 7; it has 0 to 2\n"


def test_undelivered_records_are_counted(node: Node, topic: str) -> None:
    """PRD-2: an invalid partition is refused, nothing is sent."""
    lines = b'{"value": "a", "partition": 5}\n' * 2
    done = headrace(node, "produce", topic, "--from-json", "--json", stdin=lines)
    assert (done.code, done.document["failed"], done.document["records"]) == (1, 2, 0)
    assert f"2 not delivered: {topic} has no partition 5" in done.err
    ok(node, "produce", topic, "--from-json", "--repartition", stdin=lines)
    refused = headrace(node, "produce", topic, "--partition", "5", stdin=b"a\n")
    assert refused.err == f"headrace: {topic} has no partition 5; it has 0 to 0\n"


def test_a_record_that_is_too_large_is_reported_and_the_rest_is_sent(node: Node) -> None:
    """LOG-15: refused above the limit with MESSAGE_TOO_LARGE."""
    topic = create_topic(node, max_message_bytes=10_000)
    done = headrace(node, "produce", topic, "--json", stdin=b"x" * 20_000 + b"\n")
    assert (done.code, done.document["failed"]) == (1, 1)
    ok(node, "produce", topic, stdin=b"small\n")
    assert read_values(node, topic) == [b"small"]


def test_delivered_records_are_confirmed_on_standard_error(node: Node, topic: str) -> None:
    done = ok(node, "produce", topic, stdin=b"1\n2\n3\n")
    assert done.err == f"3 records delivered to {topic}\n"


def test_a_line_without_key_stops_after_the_lines_before_it(node: Node, topic: str) -> None:
    done = headrace(node, "produce", topic, "-K", ":", stdin=b"a:1\nb:2\nkeyless\nd:4\n")
    assert done.code == 1
    assert "stopped at line 3: no key separator ':' in 'keyless'" in done.err
    assert "2 records delivered, 1 not" in done.err
    assert read_values(node, topic) == [b"1", b"2"]


# Tests in the background run with Ctrl-C switched off, and children inherit that.
AS_ON_A_TERMINAL = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)


@contextmanager
def producing(node: Node, topic: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A producer that waits for lines."""
    command = [sys.executable, "-m", "headrace.cli.main", "produce", topic, "-b", node.address]
    command += ["-X", "reconnect.backoff.max.ms=500"]
    process = subprocess.Popen(
        [sys.executable, "-c", AS_ON_A_TERMINAL, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                pipe.close()


def send_line(process: "subprocess.Popen[bytes]", line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def next_error(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    return process.stderr.readline().decode()


def test_ctrl_c_reports_the_number_of_delivered_records(node: Node, topic: str) -> None:
    with producing(node, topic) as process:
        send_line(process, b"one\ntwo\n")
        eventually(lambda: len(read_values(node, topic)), expect=lambda count: count == 2)
        process.send_signal(signal.SIGINT)
        assert next_error(process) == ("headrace: interrupted: 2 records delivered, 0 not\n")
        assert process.wait(60) == 130


def test_a_producer_reports_an_outage_and_its_end(start_node: StartNode) -> None:
    node = start_node()
    topic = create_topic(node)
    with producing(node, topic) as process:
        send_line(process, b"before\n")
        eventually(lambda: read_values(node, topic), expect=lambda found: found == [b"before"])
        node.kill()
        send_line(process, b"meanwhile\n")
        assert next_error(process).startswith("headrace: no broker answers (")
        node.start()
        assert next_error(process) == "headrace: a broker answers again\n"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0
    assert read_values(node, topic) == [b"before", b"meanwhile"]


def test_reading_a_missing_topic_is_one_clear_line(node: Node) -> None:
    done = headrace(node, "consume", "no-such-topic")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("headrace: topic 'no-such-topic' does not exist;")
    assert "no-such-topic" not in ok(node, "topics", "list").out


def test_an_unknown_client_setting_is_reported(node: Node, topic: str) -> None:
    done = headrace(node, "consume", topic, "-X", "fetch.mim.bytes=1")
    assert done.code == 1
    assert "unknown property 'fetch.mim.bytes'. Did you mean fetch.min.bytes?" in done.err
