"""`headrace produce`: lines from standard input become records, as fast as librdkafka takes them.

Plain lines and `key<separator>value` lines go in lists straight to librdkafka; headers and times
need a call per record, which is still some hundred thousand a second.
"""

import sys
import time

import click
import msgspec

from headrace.cli.line_shapes import Shape, send_lines
from headrace.cli.lines import read_lines
from headrace.cli.options import (
    bootstrap_option,
    client_properties,
    command_config_option,
    json_option,
    moment,
    name_value,
    property_option,
)
from headrace.cli.output import counted, print_json, warn
from headrace.cli.partition_choice import check_partitions
from headrace.cli.progress import OutageNotice, ProgressLine, rate_text
from headrace.cli.record_text import unescape
from headrace.client.bulk import RecordProducer
from headrace.client.cluster import check_reachable
from headrace.errors import HeadraceError

INTERRUPTED = 130
"""What a shell makes of a program that Ctrl-C has ended."""

_STDIN = 0
_INTERRUPTED_FLUSH_S = 5.0


class Produced(msgspec.Struct, frozen=True, kw_only=True):
    """The summary for programs."""

    topic: str
    records: int
    failed: int
    seconds: float
    errors: dict[str, int]
    stopped_at_line: int | None = None
    is_interrupted: bool = False


@click.command("produce", short_help="Write lines from standard input as records.")
@click.argument("topic")
@bootstrap_option
@command_config_option
@click.option("--key-separator", "-K", metavar="TEXT", help="Split lines into key and value here.")
@click.option("--key", "-k", help="The key of every record.")
@click.option(
    "--header",
    "-H",
    "headers",
    type=name_value,
    metavar="NAME=VALUE",
    multiple=True,
    help="A header of every record; may be repeated.",
)
@click.option(
    "--timestamp", "-T", type=moment, metavar="TIME", help="The time of every record; else now."
)
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Write to this partition.")
@click.option("--null-marker", "-Z", metavar="TEXT", help="A key or value of this text is null.")
@click.option(
    "--from-json",
    is_flag=True,
    help="Lines are JSON records, as `headrace consume --json` writes; each goes to the partition"
    " that it names.",
)
@click.option(
    "--repartition",
    is_flag=True,
    help="With --from-json: let the key choose the partition, not the line.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Which acknowledgement counts as delivered.",
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@click.option("--idempotent", is_flag=True, help="No record twice, whatever the network does.")
@property_option
@click.option(
    "--flush-timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the last acknowledgements.",
)
@json_option
def command(
    topic: str,
    bootstrap: str,
    command_config: str | None,
    key_separator: str | None,
    key: str | None,
    headers: tuple[tuple[str, str], ...],
    timestamp: int | None,
    partition: int | None,
    null_marker: str | None,
    from_json: bool,
    repartition: bool,
    acks: str,
    compression: str,
    idempotent: bool,
    properties: tuple[tuple[str, str], ...],
    flush_timeout: float,
    as_json: bool,
) -> int:
    """Write lines from standard input to TOPIC, one record a line.

    \b
    seq 1000000 | headrace produce numbers
    echo 'ada:42' | headrace produce scores --key-separator : --header source=shell
    headrace consume old --from-beginning --exit-at-end --json | headrace produce new --from-json

    Ends with 1 when a record was not delivered, with 130 on Ctrl-C; both say how many went through.
    """
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    if repartition and not from_json:
        raise click.UsageError("--repartition goes with --from-json")
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    shape = Shape(
        key_separator=_bytes(key_separator),
        key=_bytes(key),
        headers=tuple((name, text.encode()) for name, text in headers),
        timestamp_ms=timestamp or 0,
        partition=-1 if partition is None else partition,
        null_marker=_bytes(null_marker),
        from_json=from_json,
        repartition=repartition,
    )
    settings = {
        "acks": acks,
        "compression.type": compression,
        "enable.idempotence": str(idempotent).lower(),
        **client_properties(command_config, properties),
    }
    produced = produce(bootstrap, topic, settings, shape, flush_timeout)
    return _report(produced, as_json=as_json)


def produce(
    bootstrap: str,
    topic: str,
    settings: dict[str, str],
    shape: Shape,
    flush_timeout_s: float,
    lines: list[bytes] | None = None,
) -> Produced:
    """Send these lines, or all of standard input; the result counts what was delivered or not."""
    check_reachable(bootstrap, settings)
    watch = Watch()
    producer = RecordProducer(bootstrap, topic, settings, lambda: watch.look(producer))
    producer.require_topic()
    if shape.partition >= 0:
        check_partitions(topic, [shape.partition], producer.partitions())
    errors: dict[str, int] = {}
    stopped_at_line = None
    is_interrupted = False
    undelivered = 0
    try:
        try:
            if lines is None:
                _send_input(producer, shape, watch)
            else:
                send_lines(producer, shape, lines)
        except HeadraceError as error:
            stopped_at_line = producer.sent + 1
            errors[f"stopped at line {stopped_at_line}: {error}"] = 1
        undelivered = producer.flush(flush_timeout_s)
    except KeyboardInterrupt:
        is_interrupted = True
        undelivered = _flush_once_more(producer)
    finally:
        watch.end()
    if undelivered:
        reason = "when interrupted" if is_interrupted else f"within {flush_timeout_s:g} s"
        errors[f"not acknowledged {reason}"] = undelivered
    errors.update(producer.failures)
    return Produced(
        topic=topic,
        records=producer.sent - producer.failed - undelivered,
        failed=sum(errors.values()),
        seconds=round(watch.seconds, 3),
        errors=errors,
        stopped_at_line=stopped_at_line,
        is_interrupted=is_interrupted,
    )


class Watch:
    """Tells the person how it goes: a line on a terminal, and outages to whoever reads along."""

    def __init__(self) -> None:
        self._progress = ProgressLine()
        self._outage = OutageNotice()
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def look(self, producer: RecordProducer) -> None:
        """Called often, while sending and while waiting."""
        self._outage.look(
            producer.outage,
            f"{counted(producer.waiting, 'record')} waiting for it",
            self._progress.clear,
        )
        if self._progress.is_due():
            text = rate_text(producer.delivered, self.seconds)
            waiting = f", {producer.waiting:,} waiting" if producer.outage else ""
            self._progress.show(text + waiting)

    def end(self) -> None:
        self._progress.clear()


def _send_input(producer: RecordProducer, shape: Shape, watch: Watch) -> None:
    def idle() -> None:
        producer.poll()
        watch.look(producer)

    for lines in read_lines(_STDIN, idle):
        send_lines(producer, shape, lines)
        watch.look(producer)


def _flush_once_more(producer: RecordProducer) -> int:
    """What is on its way may still arrive; a second Ctrl-C does not wait for it."""
    try:
        return producer.flush(_INTERRUPTED_FLUSH_S)
    except KeyboardInterrupt:
        return producer.waiting


def _report(produced: Produced, *, as_json: bool) -> int:
    if as_json:
        print_json(produced)
    elif sys.stderr.isatty() and not produced.failed and not produced.is_interrupted:
        sys.stderr.write(f"{rate_text(produced.records, produced.seconds)}\n")
    for message, count in produced.errors.items():
        warn(f"{count:,} not delivered: {message}")
    if produced.failed or produced.is_interrupted:
        word = "interrupted: " if produced.is_interrupted else ""
        warn(
            f"{word}{counted(produced.records, 'record')} went through, {produced.failed:,} did not"
        )
    if produced.is_interrupted:
        return INTERRUPTED
    return 1 if produced.failed else 0


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else unescape(text).encode()
