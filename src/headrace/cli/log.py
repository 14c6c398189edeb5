"""`headrace log`: dump the files of a log, list segments and log directories."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from headrace.cli.log_files import DumpEntry, base_offset_of, dump_file
from headrace.cli.options import ClusterOptions, admin_options, json_option
from headrace.cli.output import print_json, print_line, print_rows, size_text, time_text, warn
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


@click.group("log", short_help="Dump the files of a log as text, list log directories.")
def command() -> None:
    """Dump the files of a log as text, list segments and log directories."""


@command.command("dump")
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="FILE...")
@click.option("--records", "-r", "show_records", is_flag=True, help="Include the records.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON line per entry.")
def dump(paths: tuple[Path, ...], show_records: bool, as_json: bool) -> int:
    """Dump files of a log: segments, indexes, snapshots, checkpoints, metadata.

    Needs no broker. Exits with 1 if a file contains invalid entries.

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
    if not found and not as_json:
        raise HeadraceError(f"{directory} holds no segments; name a directory such as orders-0")
    print_rows(
        found,
        {
            "base offset": lambda one: one.base_offset,
            "size": lambda one: size_text(one.size_bytes),
            "bytes": lambda one: one.size_bytes,
            "index": lambda one: one.index_bytes,
            "time index": lambda one: one.time_index_bytes,
            "last changed": lambda one: time_text(one.modified_ms),
        },
        as_json=as_json,
    )


@command.command("dirs")
@click.option(
    "--broker", "brokers", type=int, multiple=True, help="Only this broker; may be repeated."
)
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be repeated.")
@admin_options
def directories(
    brokers: tuple[int, ...], topics: tuple[str, ...], as_json: bool, cluster: ClusterOptions
) -> int:
    """Show the log directories of brokers and the size of their partitions."""
    with cluster.admin() as client:
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
    """Return the segments of a partition directory, oldest first."""
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


def _line(path: Path, entry: DumpEntry, *, as_json: bool) -> str:
    if not as_json:
        return entry.text() + "\n"
    document = {"file": str(path), **msgspec.to_builtins(entry)}
    return msgspec.json.encode(document).decode() + "\n"


def _is_bad(entry: DumpEntry) -> bool:
    """Return whether an entry reports damage."""
    return getattr(entry, "problem", None) is not None or getattr(entry, "is_valid", None) is False


def _print_directories(found: Sequence[LogDirectory]) -> None:
    print_rows(
        found,
        {
            "broker": lambda one: one.broker,
            "directory": lambda one: one.path,
            "partitions": lambda one: len(one.replicas),
            "held": lambda one: size_text(sum(replica.size_bytes for replica in one.replicas)),
            "free": lambda one: "-" if one.usable_bytes is None else size_text(one.usable_bytes),
            "of": lambda one: "-" if one.total_bytes is None else size_text(one.total_bytes),
        },
    )
    print_line("")
    print_rows(
        [(one.broker, replica) for one in found for replica in one.replicas],
        {
            "broker": lambda one: one[0],
            "topic": lambda one: one[1].topic,
            "partition": lambda one: one[1].partition,
            "bytes": lambda one: one[1].size_bytes,
            "size": lambda one: size_text(one[1].size_bytes),
            "lag": lambda one: one[1].offset_lag,
        },
    )
