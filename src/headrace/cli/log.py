"""`headrace log`: what the files of a log hold, readably; where brokers keep their logs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.cli.log_files import Entry, base_offset_of, dump_file
from headrace.cli.options import admin, cluster_options, json_option
from headrace.cli.output import print_json, print_line, print_table, size_text, time_text, warn
from headrace.client.descriptions import LogDirectory
from headrace.errors import HeadraceError

EXISTING = click.Path(exists=True, path_type=Path)


class SegmentListing(msgspec.Struct, frozen=True, kw_only=True):
    """One segment of a partition directory."""

    base_offset: int
    size_bytes: int
    index_bytes: int
    time_index_bytes: int
    modified_ms: int


@click.group("log", short_help="Dump the files of a log readably, list log directories.")
def command() -> None:
    """Dump the files of a log readably, list segments and log directories."""


@command.command("dump")
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="FILE...")
@click.option("--records", "-r", "show_records", is_flag=True, help="Show the records as well.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON line per entry.")
def dump(paths: tuple[Path, ...], show_records: bool, as_json: bool) -> int:
    """Show what files of a log hold: segments, indexes, snapshots, checkpoints, metadata.

    Needs no broker. Exits with 1 when a file holds something that is not valid.

    \b
    headrace log dump data/orders-0/00000000000000000000.log --records
    headrace log dump data/__cluster_metadata-0/*.log -r
    """
    failed = 0
    for path in paths:
        if path.is_dir():
            raise HeadraceError(
                f"{path} is a directory; list it with: headrace log segments {path}"
            )
        if not as_json and len(paths) > 1:
            print_line(f"{path}:")
        for entry in dump_file(path, show_records=show_records):
            sys.stdout.write(_line(path, entry, as_json=as_json))
            failed |= _is_bad(entry)
    return failed


@command.command("segments")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def segments(directory: Path, as_json: bool) -> None:
    """List the segments of a partition directory with base offsets and sizes."""
    found = list_segments(directory)
    if as_json:
        print_json(found)
        return
    if not found:
        raise HeadraceError(f"{directory} holds no segments; name a directory such as orders-0")
    print_table(
        ("base offset", "size", "bytes", "index", "time index", "last changed"),
        [
            (
                one.base_offset,
                size_text(one.size_bytes),
                one.size_bytes,
                one.index_bytes,
                one.time_index_bytes,
                time_text(one.modified_ms),
            )
            for one in found
        ],
    )


@command.command("dirs")
@click.option(
    "--broker", "brokers", type=int, multiple=True, help="Only this broker; may be repeated."
)
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be repeated.")
@cluster_options
@json_option
def directories(
    brokers: tuple[int, ...], topics: tuple[str, ...], as_json: bool, **cluster: Any
) -> int:
    """Show the log directories of brokers and what partitions take in them."""
    with admin(**cluster) as client:
        found = client.nodes.log_directories(
            sorted(set(brokers)) or None, sorted(set(topics)) or None
        )
    if as_json:
        print_json(found)
    else:
        _print_directories(found)
    offline = [directory for directory in found if directory.error]
    for directory in offline:
        warn(f"broker {directory.broker}: {directory.path} is offline ({directory.error})")
    return 1 if offline else 0


def list_segments(directory: Path) -> list[SegmentListing]:
    """The segments of a partition directory, oldest first."""
    return [_segment(path) for path in sorted(directory.glob("*.log"))]


def _segment(path: Path) -> SegmentListing:
    status = path.stat()
    return SegmentListing(
        base_offset=base_offset_of(path),
        size_bytes=status.st_size,
        index_bytes=_size(path.with_suffix(".index")),
        time_index_bytes=_size(path.with_suffix(".timeindex")),
        modified_ms=int(status.st_mtime * 1000),
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _line(path: Path, entry: Entry, *, as_json: bool) -> str:
    if not as_json:
        return entry.text() + "\n"
    document = {"file": str(path), **msgspec.to_builtins(entry)}
    return msgspec.json.encode(document).decode() + "\n"


def _is_bad(entry: Entry) -> bool:
    """Whether an entry tells of damage."""
    return getattr(entry, "problem", None) is not None or getattr(entry, "is_valid", None) is False


def _print_directories(found: Sequence[LogDirectory]) -> None:
    print_table(
        ("broker", "directory", "partitions", "held", "free", "of"),
        [
            (
                one.broker,
                one.path,
                len(one.replicas),
                size_text(sum(replica.size_bytes for replica in one.replicas)),
                "-" if one.usable_bytes is None else size_text(one.usable_bytes),
                "-" if one.total_bytes is None else size_text(one.total_bytes),
            )
            for one in found
        ],
    )
    print_line("")
    print_table(
        ("broker", "topic", "partition", "bytes", "size", "lag"),
        [
            (
                one.broker,
                replica.topic,
                replica.partition,
                replica.size_bytes,
                size_text(replica.size_bytes),
                replica.offset_lag,
            )
            for one in found
            for replica in one.replicas
        ],
    )
