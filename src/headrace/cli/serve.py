"""`headrace serve`: answer SQL over the tables of a lake by HTTP, until Ctrl-C."""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.extras import require
from headrace.cli.options import size_bytes

if TYPE_CHECKING:
    from headrace.http.access import TokenFile
    from headrace.http.addresses import ListenAddress
    from headrace.serving.settings import ServingSettings

_log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:8090"
ALL = "all"
_MEMORY_MIN = 64 << 20


def zone_names(text: str) -> tuple[str, ...]:
    """An option's value such as `refined,trusted`, or `all`."""
    if text.strip().lower() == ALL:
        return (ALL,)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise click.BadParameter("name at least one zone, or `all`")
    return names


@click.command("serve", short_help="Answer SQL over tables by HTTP.")
@click.option(
    "--lake",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The folder with the tables.",
)
@click.option("--listen", default=DEFAULT_LISTEN, show_default=True, metavar="HOST:PORT")
@click.option(
    "--zones",
    type=zone_names,
    default="refined",
    show_default=True,
    help="Which zones may be read, joined by commas, or all.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Answer only those who send one of its lines as bearer token.",
)
@click.option(
    "--memory",
    type=size_bytes,
    default="2GB",
    show_default=True,
    metavar="SIZE",
    help="For tables and queries together; half of it for tables.",
)
@click.option("--rows", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--timeout", type=click.FloatRange(0.1), default=30.0, show_default=True)
@click.option("--concurrency", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option("--refresh", type=click.FloatRange(0.05), default=1.0, show_default=True)
def command(
    lake: Path,
    listen: str,
    zones: tuple[str, ...],
    token_file: Path | None,
    memory: int,
    rows: int,
    timeout: float,
    concurrency: int,
    refresh: float,
) -> int:
    """Answer SQL over the tables of a lake by HTTP, until Ctrl-C.

    Reads only: one SELECT at a time, up to --rows rows in --timeout seconds, --concurrency queries
    at once. New versions of tables are looked for every --refresh seconds.

    \b
    headrace serve --lake lake
    curl -d 'SELECT * FROM traffic_by_minute LIMIT 3' http://127.0.0.1:8090/query
    curl 'http://127.0.0.1:8090/tables/refined.customers/rows?id=7'
    """
    if memory < _MEMORY_MIN:
        raise click.BadParameter("give at least 64MB", param_hint="--memory")

    from headrace.runtime.logging import configure

    configure("text", ())
    _prepare_memory()

    from headrace.http.access import read_tokens
    from headrace.http.addresses import ListenAddress
    from headrace.serving.running import run
    from headrace.serving.settings import ServingSettings

    settings = ServingSettings(
        lake=lake,
        zones=_zones_there(lake, zones),
        memory_bytes=memory,
        rows_default=rows,
        rows_max=max(rows, 1_000_000),
        query_seconds_max=timeout,
        queries_at_once_max=concurrency,
        refresh_seconds=refresh,
    )
    address = ListenAddress.parse(listen)
    tokens = read_tokens(token_file) if token_file is not None else None
    _warn_of_open_doors(address, tokens)
    if not run(settings, address, tokens, lambda bound: _announce(bound, settings)):
        _log.warning("a query that cannot be interrupted is still running; it ends with us")
        sys.stdout.flush()
        os._exit(0)  # Python would wait for its thread.
    return 0


def _zones_there(lake: Path, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The zones that are asked for, which must be those of a lake, or all of this one."""
    from headrace.lake.catalog import Lake
    from headrace.serving.zones import NoSuchZone, check_zones, zones_of

    known = zones_of(Lake(lake).catalog())
    try:
        check_zones(asked if asked != (ALL,) else (), known)
    except NoSuchZone as error:
        raise click.BadParameter(str(error), param_hint="--zones") from error
    return known if asked == (ALL,) else asked


def _prepare_memory() -> None:
    """Before DuckDB and Arrow are imported, which read the environment then."""
    from headrace.serving.memory_wall import let_memory_return

    let_memory_return()
    require("serve")


def _warn_of_open_doors(address: "ListenAddress", tokens: "TokenFile | None") -> None:
    if not address.is_loopback and tokens is None:
        _log.warning(
            "%s is open to the network: anyone who reaches it may read the tables; give tokens"
            " with --token-file",
            address,
        )
    if not address.is_loopback and tokens is not None:
        _log.warning(
            "%s takes tokens over unencrypted HTTP: put a proxy with TLS before it", address
        )
    if tokens is not None and tokens.is_open_to_others:
        _log.warning("other users of this machine may read the token file; chmod 600 helps")


def _announce(address: "ListenAddress", settings: "ServingSettings") -> None:
    """The first thing that a new user reads; other programs wait for its first line."""
    print(f"Headrace serves tables on {address.url}")
    print(f"  lake      {settings.lake} ({', '.join(settings.zones)})")
    print(f"  tables    curl {address.url}/tables")
    print(f"  query     curl -d 'SHOW TABLES' {address.url}/query")
    print("  stop      Ctrl-C", flush=True)
