"""`headrace capture`: write a topic to Avro or Parquet files, by windows of time and size."""

import signal
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any, Self

import click

from headrace.capture.capturing import Capture, Captured
from headrace.capture.files import FORMATS
from headrace.capture.reading import PartitionReader
from headrace.capture.windows import Limits
from headrace.cli import options
from headrace.cli.options import ClusterOptions, duration_ms, options_as, size_bytes
from headrace.cli.output import counted, print_line, size_text, warn
from headrace.client.cluster import check_reachable
from headrace.runtime.signals import ending_signals


def window_ms(text: str) -> int:
    found = duration_ms(text)
    if found < 1:
        raise click.BadParameter("a window takes some time; give one like 30s, 5m, 1h")
    return found


@click.command("capture", short_help="Write a topic into Avro or Parquet files.")
@click.argument("topic")
@click.option(
    "--to",
    "directory",
    required=True,
    type=options.LocalFolder(),
    metavar="DIR",
    help="Directory of the files: DIR/TOPIC/PARTITION/DATE/HOUR/FIRST-LAST.FORMAT.",
)
@click.option(
    "--format",
    "suffix",
    type=click.Choice(list(FORMATS)),
    default="avro",
    show_default=True,
    help="Format of the files.",
)
@click.option(
    "--window",
    type=window_ms,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="Maximum duration of a file.",
)
@click.option(
    "--size",
    type=size_bytes,
    default="128MB",
    show_default=True,
    metavar="SIZE",
    help="Maximum size of a file.",
)
@click.option(
    "--group",
    metavar="NAME",
    show_default="capture-TOPIC",
    help="Consumer group that shows the progress.",
)
@click.option("--once", is_flag=True, help="Stop after the current records.")
@click.option("--empty", is_flag=True, help="Also write a file for a window without records.")
@options.bootstrap_option
@options.command_config_option
@options.property_option
@options_as(ClusterOptions, "cluster")
def command(
    topic: str,
    directory: Path,
    suffix: str,
    window: int,
    size: int,
    group: str | None,
    once: bool,
    empty: bool,
    cluster: ClusterOptions,
) -> None:
    """Write TOPIC to files, every record to exactly one of them, until Ctrl-C.

    \b
    headrace capture orders --to lake/landing --format parquet --window 5m --size 128MB
    headrace capture orders --to backup --once

    A file gets its name when it is complete, so after a kill the next run continues after the last
    complete file. A file is stored under the UTC hour of its first record. A record of a later hour
    starts a new file; a late record stays with the records around it.
    """
    settings = cluster.settings()
    check_reachable(cluster.bootstrap, settings)
    named = group or f"capture-{topic}"
    with closing(PartitionReader(cluster.bootstrap, topic, named, settings)) as reader:
        capture = Capture(
            reader,
            directory,
            suffix,
            Limits(window, size),
            report=warn,
            done=print_file,
            writes_empty=empty,
        )
        with Stop() as stop:
            capture.run(once=once, is_stopped=stop.is_requested)
        if once and not capture.files_completed and not stop.is_requested():
            warn(f"{topic} has nothing new to capture")


class Stop:
    """Set by Ctrl-C or a supervisor; open files are completed before the end."""

    def __init__(self) -> None:
        self._is_requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in ending_signals():
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def is_requested(self) -> bool:
        return self._is_requested

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._is_requested = True


def print_file(captured: Captured) -> None:
    size = size_text(captured.path.stat().st_size)
    print_line(f"{captured.path}  {counted(captured.records, 'record')}, {size}")
