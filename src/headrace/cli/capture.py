"""`headrace capture`: a topic into Avro or Parquet files, by windows of time and size."""

import signal
from pathlib import Path
from types import FrameType
from typing import Any, Self

import click

from headrace.capture.capturing import Capture, Captured
from headrace.capture.files import FORMATS
from headrace.capture.reading import PartitionReader
from headrace.capture.windows import Limits
from headrace.cli.options import (
    bootstrap_option,
    client_properties,
    command_config_option,
    duration_ms,
    property_option,
    size_bytes,
)
from headrace.cli.output import counted, print_line, size_text, warn
from headrace.client.cluster import check_reachable
from headrace.runtime.signals import heeded


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
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the files go: DIR/TOPIC/PARTITION/DATE/HOUR/FIRST-LAST.FORMAT.",
)
@click.option(
    "--format", "suffix", type=click.Choice(list(FORMATS)), default="avro", show_default=True
)
@click.option(
    "--window", type=window_ms, default="5m", show_default=True, help="How long a file is open."
)
@click.option(
    "--size", type=size_bytes, default="128MB", show_default=True, help="How large a file gets."
)
@click.option("--group", metavar="NAME", help="Where progress is seen; else capture-TOPIC.")
@click.option("--once", is_flag=True, help="Write what is there now, then end.")
@click.option("--empty", is_flag=True, help="Write a file also for a window without records.")
@bootstrap_option
@command_config_option
@property_option
def command(
    topic: str,
    directory: Path,
    suffix: str,
    window: int,
    size: int,
    group: str | None,
    once: bool,
    empty: bool,
    bootstrap: str,
    command_config: str | None,
    properties: tuple[tuple[str, str], ...],
) -> None:
    """Write TOPIC into files, every record into exactly one of them, until Ctrl-C.

    \b
    headrace capture orders --to lake/landing --format parquet --window 5m --size 128MB
    headrace capture orders --to backup --once

    A file has its name once it is complete. Killed at any moment, the next run goes on after the
    last complete file. A file lies at the hour of its first record, by UTC. A record of a later
    hour begins a file; one that comes late stays in the file of those with which it came.
    """
    settings = client_properties(command_config, properties)
    check_reachable(bootstrap, settings)
    reader = PartitionReader(bootstrap, topic, group or f"capture-{topic}", settings)
    try:
        capture = Capture(
            reader,
            directory,
            suffix,
            Limits(window, size),
            tell=warn,
            done=print_file,
            writes_empty=empty,
        )
        with Stop() as stop:
            capture.run(once=once, is_stopped=stop.is_asked_for)
        if once and not capture.files_completed and not stop.is_asked_for():
            warn(f"{topic} has nothing new to capture")
    finally:
        reader.close()


class Stop:
    """Whether Ctrl-C or a supervisor asks for the end; the open files are completed first."""

    def __init__(self) -> None:
        self._is_asked_for = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in heeded():
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def is_asked_for(self) -> bool:
        return self._is_asked_for

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._is_asked_for = True


def print_file(captured: Captured) -> None:
    size = size_text(captured.path.stat().st_size)
    print_line(f"{captured.path}  {counted(captured.records, 'record')}, {size}")
