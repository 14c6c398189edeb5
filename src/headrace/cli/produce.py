"""`headrace produce`: send lines from standard input as records at librdkafka's speed.

Plain lines and `key<separator>value` lines go to librdkafka in lists; headers and timestamps
need a call per record, which still reaches some hundred thousand a second.
"""

import sys
import time

import click
import msgspec

from headrace.cli import options
from headrace.cli.line_shapes import LineShape, read_lines, send_lines
from headrace.cli.options import ClusterOptions, options_as
from headrace.cli.output import counted, print_json, warn
from headrace.cli.progress import OutageNotice, ProgressLine, rate_text
from headrace.cli.record_text import unescape
from headrace.client.bulk import RecordProducer
from headrace.client.cluster import check_reachable
from headrace.errors import HeadraceError

INTERRUPTED = 130
"""A shell's exit code for a program ended by Ctrl-C."""

_STDIN = 0
_INTERRUPTED_FLUSH_S = 5.0


class Produced(msgspec.Struct, frozen=True, kw_only=True):
    """Summary for programs."""

    topic: str
    records: int
    failed: int
    seconds: float
    errors: dict[str, int]
    stopped_at_line: int | None = None
    is_interrupted: bool = False


class DeliveryOptions(msgspec.Struct, frozen=True):
    """Options about the delivery of records."""

    acks: str
    compression: str
    idempotent: bool
    flush_timeout: float


def unescaped(text: str) -> bytes:
    """Convert an option's text, which may contain escapes such as `\\t`."""
    return unescape(text).encode()


def header(text: str) -> tuple[str, bytes]:
    """Parse a header of the form `name=value`."""
    name, value = options.name_value(text)
    return name, value.encode()


@click.command("produce", short_help="Write lines from standard input as records.")
@click.argument("topic")
@options.bootstrap_option
@options.command_config_option
@click.option(
    "--key-separator",
    "-K",
    type=unescaped,
    metavar="TEXT",
    help="Split lines into key and value here.",
)
@click.option("--key", "-k", type=unescaped, metavar="TEXT", help="The key of every record.")
@click.option(
    "--header",
    "-H",
    "headers",
    type=header,
    metavar="NAME=VALUE",
    multiple=True,
    help="A header of every record; may be repeated.",
)
@click.option(
    "--timestamp",
    "-T",
    "timestamp_ms",
    type=options.moment,
    metavar="TIME",
    show_default="now",
    help="The timestamp of every record.",
)
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Write to this partition.")
@click.option(
    "--null-marker",
    "-Z",
    type=unescaped,
    metavar="TEXT",
    help="Send null for a key or value of this text.",
)
@click.option(
    "--from-json",
    is_flag=True,
    help="Read JSON records as written by `headrace consume --json`; each goes to the partition"
    " it names.",
)
@click.option(
    "--repartition",
    is_flag=True,
    help="With --from-json: ignore the partition of the line, and let the key choose.",
)
@options.delivery_options
@click.option(
    "--idempotent", is_flag=True, help="Deduplicate retries, so that no record is stored twice."
)
@options.property_option
@click.option(
    "--flush-timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the last acknowledgements.",
)
@options.json_option
@options_as(ClusterOptions, "cluster")
@options_as(DeliveryOptions, "delivery")
@options_as(LineShape, "shape")
def command(
    topic: str, cluster: ClusterOptions, shape: LineShape, delivery: DeliveryOptions, as_json: bool
) -> int:
    """Write lines from standard input to TOPIC, one record per line.

    \b
    seq 1000000 | headrace produce numbers
    echo 'ada:42' | headrace produce scores --key-separator : --header source=shell
    headrace consume old --from-beginning --exit-at-end --json | headrace produce new --from-json

    Exits with 1 if a record was not delivered, with 130 on Ctrl-C. Prints the number of delivered
    records.
    """
    if shape.key_separator == b"":
        raise click.UsageError("--key-separator must not be empty")
    if shape.repartition and not shape.from_json:
        raise click.UsageError("--repartition goes with --from-json")
    if shape.key is not None and shape.key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    settings = {
        "acks": delivery.acks,
        "compression.type": delivery.compression,
        "enable.idempotence": str(delivery.idempotent).lower(),
        **cluster.settings(),
    }
    produced = produce(cluster.bootstrap, topic, settings, shape, delivery.flush_timeout)
    return _report(produced, as_json=as_json)


def produce(
    bootstrap: str,
    topic: str,
    settings: dict[str, str],
    shape: LineShape,
    flush_timeout_s: float,
    lines: list[bytes] | None = None,
) -> Produced:
    """Send these lines, or all of standard input; count delivered and failed records."""
    check_reachable(bootstrap, settings)
    watch = Watch()
    producer = RecordProducer(bootstrap, topic, settings, lambda: watch.look(producer))
    producer.require_topic()
    if shape.partition >= 0:
        options.check_partitions(topic, [shape.partition], producer.partitions())
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
    """Progress of a run: a live line on a terminal, and one line per outage."""

    def __init__(self) -> None:
        self._progress = ProgressLine()
        self._outage = OutageNotice()
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def look(self, producer: RecordProducer) -> None:
        """Update the progress; called often while sending and waiting."""
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


def _send_input(producer: RecordProducer, shape: LineShape, watch: Watch) -> None:
    def idle() -> None:
        producer.poll()
        watch.look(producer)

    for lines in read_lines(_STDIN, idle):
        send_lines(producer, shape, lines)
        watch.look(producer)


def _flush_once_more(producer: RecordProducer) -> int:
    """Wait briefly for records in flight; a second Ctrl-C ends the wait."""
    try:
        return producer.flush(_INTERRUPTED_FLUSH_S)
    except KeyboardInterrupt:
        return producer.waiting


def _report(produced: Produced, *, as_json: bool) -> int:
    if as_json:
        print_json(produced)
    elif not produced.failed and not produced.is_interrupted:
        duration = f" in {produced.seconds:,.1f} s" if produced.seconds >= 1 else ""
        sys.stderr.write(
            f"{counted(produced.records, 'record')} delivered to {produced.topic}{duration}\n"
        )
    for message, count in produced.errors.items():
        warn(f"{count:,} not delivered: {message}")
    if produced.failed or produced.is_interrupted:
        word = "interrupted: " if produced.is_interrupted else ""
        warn(f"{word}{counted(produced.records, 'record')} delivered, {produced.failed:,} not")
    if produced.is_interrupted:
        return INTERRUPTED
    return 1 if produced.failed else 0
