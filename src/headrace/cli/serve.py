"""`headrace serve`: answer SQL over the tables of a lake by HTTP, until Ctrl-C."""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.extras import require
from headrace.cli.listener_options import warn_of_exposure
from headrace.cli.options import LakeFolder, size_bytes

if TYPE_CHECKING:
    from headrace.serving.settings import ServingSettings

_log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:8090"
ALL = "all"
_MEMORY_MIN = 64 << 20


def zone_names(text: str) -> tuple[str, ...]:
    """Parse an option's value such as `refined,trusted`, or `all`."""
    if text.strip().lower() == ALL:
        return (ALL,)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise click.BadParameter("name at least one zone, or `all`")
    return names


@click.command("serve", short_help="Answer SQL over tables by HTTP.")
@click.option(
    "--lake",
    type=LakeFolder(exists=True),
    required=True,
    metavar="DIR",
    help="The folder with the tables.",
)
@click.option(
    "--listen",
    default=DEFAULT_LISTEN,
    show_default=True,
    metavar="HOST:PORT",
    help="Address for clients.",
)
@click.option(
    "--zones",
    type=zone_names,
    default="refined",
    show_default=True,
    help="Readable zones, separated by commas, or all.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Require one of its lines as bearer token.",
)
@click.option(
    "--memory",
    type=size_bytes,
    default="2GB",
    show_default=True,
    metavar="SIZE",
    help="Memory for tables and queries; half of it is for tables.",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Maximum number of rows of an answer, unless the request sets a limit.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum duration of a query.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Maximum number of queries at once.",
)
@click.option(
    "--refresh",
    type=click.FloatRange(0.05),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Interval of the check for new versions of tables.",
)
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

    Read-only: one SELECT per request, up to --rows rows in --timeout seconds, --concurrency queries
    at once. Checks for new versions of tables every --refresh seconds.

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

    from headrace.http.access import Authentication, read_tokens
    from headrace.http.addresses import ListenAddress
    from headrace.http.product import Listener, run
    from headrace.serving.routes import running
    from headrace.serving.service import Service
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
    authentication = Authentication(read_tokens(token_file) if token_file is not None else None)
    warn_of_exposure(
        address,
        authentication,
        None,
        "read tables",
        login="require tokens with --token-file",
        encryption="use a proxy with TLS",
    )
    service, listener = Service(settings), Listener(address, authentication)
    run(lambda _: running(service, authentication), listener, lambda url: _announce(url, settings))
    if not service.is_stopped:
        _log.warning(
            "query ended with the server, as it cannot be interrupted",
            extra={"address": str(address)},
        )
        sys.stdout.flush()
        os._exit(0)  # Python would wait for its thread.
    return 0


def _zones_there(lake: Path, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the zones to serve, which the lake must contain."""
    from headrace.lake.catalog import Lake
    from headrace.serving.catalogue import NoSuchZone, check_zones, zones_of

    known = zones_of(Lake(lake).catalog())
    try:
        check_zones(asked if asked != (ALL,) else (), known)
    except NoSuchZone as error:
        raise click.BadParameter(str(error), param_hint="--zones") from error
    return known if asked == (ALL,) else asked


def _prepare_memory() -> None:
    """Configure memory before DuckDB and Arrow are imported and read the environment."""
    from headrace.serving.memory_limit import configure_allocators

    configure_allocators()
    require("serve")


def _announce(url: str, settings: "ServingSettings") -> None:
    """Print the address and first commands; other programs wait for the first line."""
    print(f"Headrace serves tables on {url}")
    print(f"  lake      {settings.lake} ({', '.join(settings.zones)})")
    print(f"  tables    curl {url}/tables")
    print(f"  query     curl -d 'SHOW TABLES' {url}/query")
    print("  stop      Ctrl-C", flush=True)
