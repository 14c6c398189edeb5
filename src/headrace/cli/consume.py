"""`headrace consume`: write records to standard output, a batch of librdkafka at a time.

Without --group the command assigns partitions to itself and commits no offsets.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import click
import msgspec

from headrace.cli import options
from headrace.cli.options import ClusterOptions, options_as
from headrace.cli.output import warn
from headrace.cli.progress import OutageNotice, ProgressLine, rate_text
from headrace.cli.record_text import Formatter, formatter, record_json
from headrace.cli.schema_sources import decoding_options, schemas_of
from headrace.client.cluster import check_reachable
from headrace.client.reader import BATCH_RECORDS_MAX, GroupReader, RecordReader, Start
from headrace.client.records import ReadRecord

Writer = Callable[[Sequence[ReadRecord]], bytes]


class ReadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that end reading."""

    count: int | None = None
    exit_at_end: bool = False
    idle_s: float | None = None

    def are_met(self, *, is_at_end: bool, silent_s: float) -> bool:
        """Return whether to stop after an empty read."""
        if self.exit_at_end and is_at_end:
            return True
        return self.idle_s is not None and silent_s >= self.idle_s


class ReadOptions(msgspec.Struct, frozen=True):
    """Options that choose records and their format."""

    from_beginning: bool
    read_uncommitted: bool
    as_json: bool
    start: Start | None = None
    from_time: int | None = None
    partitions: tuple[int, ...] = ()
    group: str | None = None
    template: str | None = None

    def first(self) -> Start:
        """Return the position of the first record."""
        given = [self.from_beginning, self.start is not None, self.from_time is not None]
        if sum(given) > 1:
            raise click.UsageError("give only one of --from-beginning, --offset and --from-time")
        if self.group is not None and (self.partitions or any(given[1:])):
            raise click.UsageError(
                "--group excludes --partition, --offset and --from-time: the group chooses its"
                " offsets"
            )
        if self.from_time is not None:
            return Start(timestamp_ms=self.from_time)
        return self.start if self.start is not None else Start(from_beginning=self.from_beginning)


def start_offset(text: str) -> Start:
    """Parse `earliest`, `latest`, an offset, or a negative number counted from the end."""
    match text:
        case "earliest" | "beginning":
            return Start(from_beginning=True)
        case "latest" | "end":
            return Start()
    try:
        return Start(offset=int(text))
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not an offset; give earliest, latest, a number,"
            " or -N for the last N records of each partition"
        ) from error


@click.command("consume", short_help="Write records to standard output.")
@click.argument("topic")
@options.bootstrap_option
@options.command_config_option
@click.option("--from-beginning", is_flag=True, help="Start with the oldest records.")
@click.option(
    "--offset",
    "-o",
    "start",
    type=start_offset,
    metavar="OFFSET",
    help="Start at earliest, latest, offset N, or with the last N records (-N).",
)
@click.option(
    "--from-time",
    "-T",
    type=options.moment,
    metavar="TIME",
    help="Start with the first records at or after this time.",
)
@click.option("--count", "-c", type=click.IntRange(min=0), help="Stop after this many records.")
@click.option("--exit-at-end", "-e", is_flag=True, help="Stop at the end of the log.")
@click.option(
    "--timeout",
    "idle_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop when no record arrives for this long.",
)
@options.partitions_option("Read only this partition; may be repeated.")
@click.option(
    "--group",
    "-g",
    metavar="NAME",
    help="Join this group: start at its committed offsets and commit what was written.",
)
@click.option(
    "--format",
    "-f",
    "template",
    help="Template of a record: %t topic, %p partition, %o offset, %T time in ms, %D as a date,"
    " %k key, %v value, %K %V their sizes, %h headers, %% a percent sign; \\n and \\t are escapes.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON line per record.")
@click.option(
    "--read-uncommitted", is_flag=True, help="Include records of open and aborted transactions."
)
@decoding_options
@options.property_option
@options_as(ClusterOptions, "cluster")
@options_as(ReadOptions, "given")
@options_as(ReadLimits, "limits")
def command(
    topic: str, cluster: ClusterOptions, given: ReadOptions, limits: ReadLimits, **registry: Any
) -> int:
    """Write the records of TOPIC to standard output, new records as they arrive.

    \b
    headrace consume orders --from-beginning --count 10
    headrace consume orders --from-time 15m --format '%D %k: %v\\n'
    headrace consume orders --offset -100 --exit-at-end --json
    headrace consume orders --group billing --from-beginning
    headrace consume orders --registry http://127.0.0.1:8081

    With --registry, payloads that name a schema become JSON; others are unchanged. With --group,
    --from-beginning applies only to partitions without a committed offset.
    """
    writer = record_writer(given.template, as_json=given.as_json)
    if registry["registry"]:
        writer = decoding(writer, **registry)
    begin = given.first()
    isolation = "read_uncommitted" if given.read_uncommitted else "read_committed"
    settings = {"isolation.level": isolation, **cluster.settings()}
    check_reachable(cluster.bootstrap, settings)
    with closing(_reader(cluster.bootstrap, topic, settings, given.group, begin)) as reader:
        if isinstance(reader, GroupReader):
            reader.join()
        else:
            reader.assign(begin, _wanted(reader, given.partitions))
        return copy(reader, writer, limits)


def _reader(
    bootstrap: str, topic: str, settings: dict[str, str], group: str | None, begin: Start
) -> RecordReader:
    if group is None:
        return RecordReader(bootstrap, topic, settings)
    return GroupReader(bootstrap, topic, group, settings, from_beginning=begin.from_beginning)


def copy(reader: RecordReader, writer: Writer, limits: ReadLimits) -> int:
    """Write records until a limit is met; return 1 if fewer than --count arrived."""
    out = sys.stdout.buffer
    progress = _progress()
    outage = OutageNotice()
    started = last = time.monotonic()
    written = 0
    while limits.count is None or written < limits.count:
        left = BATCH_RECORDS_MAX if limits.count is None else limits.count - written
        records = reader.read(min(left, BATCH_RECORDS_MAX))
        now = time.monotonic()
        if records:
            last = now
            out.write(writer(records))
            written += len(records)
            if len(records) < BATCH_RECORDS_MAX:
                out.flush()
                reader.commit()
        elif limits.are_met(is_at_end=reader.is_at_end, silent_s=now - last):
            break
        outage.look(reader.outage, "waiting for one", progress.clear)
        if progress.is_due():
            progress.show(rate_text(written, now - started))
    progress.clear()
    out.flush()
    reader.commit()
    if limits.count is not None and written < limits.count:
        warn(f"{written:,} of {limits.count:,} records arrived")
        return 1
    return 0


def record_writer(template: str | None, *, as_json: bool) -> Writer:
    """Return a function that turns a list of records into the bytes to print."""
    if template is not None and as_json:
        raise click.UsageError("--format and --json exclude each other")
    if as_json:
        return lambda messages: _formatted(messages, lambda record: record_json(record) + b"\n")
    if template is not None:
        format_record = formatter(template)
        return lambda messages: _formatted(messages, format_record)
    return _values


def decoding(writer: Writer, **registry: Any) -> Writer:
    """Return a writer that decodes the records first."""
    from headrace.cli.decoded_records import RecordDecoder

    decoder = RecordDecoder(schemas_of(**registry).client)
    return lambda messages: writer(decoder.decoded(messages))


def _values(messages: Sequence[ReadRecord]) -> bytes:
    """Format one value per line: the usual case and the fastest."""
    return b"\n".join([message.value() or b"" for message in messages]) + b"\n"


def _formatted(messages: Sequence[ReadRecord], format_record: Formatter) -> bytes:
    return b"".join([format_record(message) for message in messages])


def _wanted(reader: RecordReader, partitions: Sequence[int]) -> list[int]:
    present = reader.partitions()
    options.check_partitions(reader.topic, partitions, present)
    return sorted(set(partitions)) or present


def _progress() -> ProgressLine:
    """Return a progress line; it is hidden where the records themselves go to a terminal."""
    progress = ProgressLine()
    progress.is_shown = progress.is_shown and not sys.stdout.isatty()
    return progress
