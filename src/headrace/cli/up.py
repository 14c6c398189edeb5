"""`headrace up`: start a node, print its addresses, serve until Ctrl-C.

Few imports at the top: test suites wait for this command's start.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.defaults import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_DATA,
    DEFAULT_REGISTRY,
    DEFAULT_REST,
    PLAN_FILE,
    SECURITY_FOLDER,
)
from headrace.cli.file_systems import SHARED_ADVICE, is_shared
from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text
from headrace.runtime.mounts import file_system
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load
from headrace.settings.listener_security import listener_security
from headrace.settings.properties import Property, parse_assignment, read_entries

if TYPE_CHECKING:
    from headrace.broker.process import RunningNode
    from headrace.cli.local_security import LocalSecurity

_log = logging.getLogger(__name__)

_LOOPBACK = ("127.", "localhost", "::1")
_OPTIONS = {"listeners": ("--listen", "PORT"), "headrace.metrics.port": ("--metrics", "METRICS")}
"""Option of this command and variable of `make run` that set an address."""
_PORT_MAX = 65535
_NODES_MAX = 32


def listen_address(text: str) -> str:
    """Parse an option's value of the form `host:port`."""
    host, separator, port = text.rpartition(":")
    is_one_host = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not separator or not is_one_host or not (port.isascii() and port.isdecimal()):
        raise click.BadParameter(f"{text!r} is not of the form HOST:PORT, as 0.0.0.0:9092 is")
    if int(port) > _PORT_MAX:
        raise click.BadParameter(f"port {port} of {text!r} is not between 0 and {_PORT_MAX}")
    return text


@click.command("up", short_help="Start a node and serve Kafka clients until Ctrl-C.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A server.properties with Kafka's names.",
)
@click.option(
    "--data",
    type=click.Path(),  # Settings reject URLs.
    metavar="DIR",
    show_default=DEFAULT_DATA,
    help="Data directory.",
)
@click.option(
    "--listen",
    type=listen_address,
    metavar="HOST:PORT",
    show_default=DEFAULT_BOOTSTRAP,
    help="Address for clients. Port 0 takes any free port.",
)
@click.option(
    "--metrics",
    type=click.IntRange(0, _PORT_MAX),
    metavar="PORT",
    help="Serve /metrics, /health and /ready on this port.",
)
@click.option(
    "--registry",
    type=listen_address,
    is_flag=False,
    flag_value=DEFAULT_REGISTRY,
    metavar="[HOST:PORT]",
    help=f"Start a schema registry with the node; by default on {DEFAULT_REGISTRY}.",
)
@click.option(
    "--rest",
    type=listen_address,
    is_flag=False,
    flag_value=DEFAULT_REST,
    metavar="[HOST:PORT]",
    help=f"Start a REST proxy with the node; by default on {DEFAULT_REST}.",
)
@click.option(
    "--set",
    "-s",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set one property, overriding the file; may be repeated.",
)
@click.option(
    "--nodes",
    type=click.IntRange(3, _NODES_MAX),
    metavar="N",
    help="Start a cluster of N nodes, each a process, that survives the death of any of them.",
)
@click.option(
    "--brokers",
    type=click.IntRange(2, _NODES_MAX),
    metavar="N",
    help="Start one node and N-1 brokers beside it, to use several processor cores.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Require TLS and logins. The first start makes certificates, an admin and its password.",
)
@click.option(
    "--no-restart",
    is_flag=True,
    help="With --nodes or --brokers: leave a node that ends as it is, for failover drills.",
)
def command(
    config: str | None,
    assignments: tuple[str, ...],
    nodes: int | None,
    brokers: int | None,
    secure: bool,
    no_restart: bool,
    **options: Any,
) -> int:
    """Start a node, or a cluster of nodes, and serve Kafka clients until Ctrl-C.

    \b
    headrace up
    headrace up --data /var/lib/headrace --listen 0.0.0.0:9092 --set log.retention.hours=24
    headrace up --config server.properties
    headrace up --registry --rest
    headrace up --nodes 3
    headrace up --secure
    """
    from headrace.runtime.supervision import end_with_parent

    end_with_parent()
    if nodes is not None and brokers is not None:
        raise click.UsageError("--nodes and --brokers exclude each other; give one")
    if no_restart and nodes is None and brokers is None:
        raise click.UsageError("--no-restart needs --nodes or --brokers")
    entries = read_entries(config) if config is not None else []
    if nodes is not None or brokers is not None:
        from headrace.cli.up_cluster import ClusterOptions, run

        shared = {entry.name: entry.value for entry in entries}
        shared |= dict(parse_assignment(assignment) for assignment in assignments)
        given = ClusterOptions(nodes, brokers, secure=secure, restarts=not no_restart, **options)
        return run(given, shared)
    if secure:
        properties, security = _secured(entries, assignments, **options)
    else:
        properties, security = properties_of(entries, assignments, **options), None
    places = {entry.name: f"{config} line {entry.line}" for entry in entries}

    from headrace.runtime.logging import configure

    # Apply the log format first, so that errors in other settings use it too.
    is_json = properties.get("headrace.log.format", "").strip() == "json"
    configure("json" if is_json else "text", ())
    try:
        return _run(properties, places, security)
    except HeadraceError as error:
        if not is_json:
            raise HeadraceError(advised(error)) from error
        _log.error("node not started", extra={"error": advised(error)})
        return 1


def properties_of(
    entries: Iterable[Property],
    assignments: Iterable[str],
    data: str | None = None,
    listen: str | None = None,
    **services: Any,
) -> dict[str, str]:
    """Return the properties of a command line; the most specific option wins."""
    properties = {entry.name: entry.value for entry in entries}
    if data is not None:
        properties.pop("log.dir", None)
        properties["log.dirs"] = data
    if listen is not None:
        # An empty host means every interface; the node determines the advertised address.
        every_interface = listen.removeprefix("0.0.0.0").removeprefix("[::]")
        properties["listeners"] = f"PLAINTEXT://{every_interface}"
        properties.pop("advertised.listeners", None)
    properties |= _chosen(assignments, **services)
    if "log.dirs" not in properties and "log.dir" not in properties:
        properties["log.dirs"] = DEFAULT_DATA
    properties.setdefault("listeners", f"PLAINTEXT://{DEFAULT_BOOTSTRAP}")
    return properties


def _chosen(
    assignments: Iterable[str],
    metrics: int | None = None,
    registry: str | None = None,
    rest: str | None = None,
) -> dict[str, str]:
    """Return the properties of options other than those about data and listeners."""
    options = {
        "headrace.metrics.port": None if metrics is None else str(metrics),
        "headrace.registry.listeners": registry,
        "headrace.rest.listeners": rest,
    }
    properties = {name: value for name, value in options.items() if value is not None}
    return properties | dict(parse_assignment(assignment) for assignment in assignments)


def _secured(
    entries: Iterable[Property],
    assignments: Iterable[str],
    data: str | None,
    listen: str | None,
    **services: Any,
) -> "tuple[dict[str, str], LocalSecurity]":
    """Return the properties of a node with `--secure`, and its security."""
    from headrace.cli.up_secure import secured_properties

    given = {entry.name: entry.value for entry in entries} | _chosen(assignments, **services)
    return secured_properties(given, data, listen)


def _run(
    properties: Mapping[str, str],
    places: Mapping[str, str],
    security: "LocalSecurity | None" = None,
) -> int:
    settings, warnings = load(properties, places)
    _check_directories(settings)

    from headrace.runtime.logging import configure

    configure(settings.headrace_log_format, settings.headrace_log_level)
    for warning in warnings:
        _log.warning("questionable setting", extra={"reason": warning})
    _warn_of_open_listeners(settings)
    warn_of_shared_disks((*settings.directories, settings.metadata_directory))
    if security is not None:
        from headrace.cli.up_secure import format_node

        format_node(settings, security)

    from headrace.broker.process import run

    if not settings.headrace_registry_listeners and not settings.headrace_rest_listeners:
        return run(settings, on_ready=partial(_announce, security=security))

    from headrace.cli.services import Services

    services = Services(settings, None if security is None else security.service_files())

    def announce(node: "RunningNode") -> None:
        _announce(node, security)
        services.start(_address(node))

    return run(settings, on_ready=announce, before_stop=services.stop)


def _check_directories(settings: BrokerSettings) -> None:
    """Raise if a directory belongs to a local cluster, or to secured nodes."""
    for directory in settings.directories:
        if os.path.exists(os.path.join(directory, PLAN_FILE)):
            from headrace.cli.local_cluster import check_single

            check_single(directory)
        if os.path.exists(os.path.join(directory, SECURITY_FOLDER)):
            from headrace.cli.local_cluster import check_open

            check_open(directory)
        parent = os.path.dirname(os.path.abspath(directory))
        if os.path.exists(os.path.join(parent, SECURITY_FOLDER)) and not _has_tls(settings):
            from headrace.cli.local_cluster import check_open

            check_open(parent)


def advised(error: HeadraceError) -> str:
    """Return the error with the option of this command that avoids it."""
    found = _OPTIONS.get(getattr(error, "config_name", ""))
    if found is None:
        return str(error) or type(error).__name__
    option, variable = found
    return (
        f"{error}; choose another address with {option} (make run: {variable}=...),"
        " or stop what uses this one"
    )


def _has_tls(settings: BrokerSettings) -> bool:
    return any(
        listener_security(settings, listener.name).protocol.has_tls
        for listener in (*settings.broker_listeners, *settings.controller_listeners)
    )


def _warn_of_open_listeners(settings: BrokerSettings) -> None:
    """Warn once of each listener that strangers can use or overhear."""
    for listener in (*settings.broker_listeners, *settings.controller_listeners):
        protocol = listener_security(settings, listener.name).protocol
        if listener.host.startswith(_LOOPBACK) or protocol.has_tls:
            continue
        fields = {"listener": str(listener)}
        if protocol.has_sasl:
            _log.warning("listener accepts logins without encryption", extra=fields)
        else:
            _log.warning(
                "listener open to the network without authentication or encryption", extra=fields
            )


def warn_of_shared_disks(
    paths: Iterable[str], file_system_at: Callable[[str], str | None] = file_system
) -> None:
    """Warn about unsuitable file systems before the first record is stored."""
    for path in dict.fromkeys(paths):
        kind = file_system_at(path)
        if kind is not None and is_shared(kind):
            _log.warning(
                "log directory on a shared or remote file system",
                extra={"directory": path, "file_system": kind, "advice": SHARED_ADVICE},
            )


def _announce(node: "RunningNode", security: "LocalSecurity | None" = None) -> None:
    """Print the addresses and first commands; other programs wait for the first line."""
    address = _address(node)
    is_broker = node.settings.is_broker
    if security is not None:
        security.write_settings(address)
    ready = f"Headrace is ready on {address}" if is_broker else f"Controller ready on {address}"
    directories = node.settings.directories
    metrics = f"http://{node.metrics_address}/metrics" if node.metrics_address else None
    if node.settings.headrace_log_format == "json":
        _announce_to_programs(ready, data=list(directories), metrics=metrics)
        return
    print(ready)
    print(f"  data      {', '.join(directories)}")
    if metrics is not None:
        print(f"  metrics   {metrics}")
    if not is_broker:
        print("  stop      Ctrl-C", flush=True)
        return
    if security is not None:
        print("\n".join(security.announced_lines(address)))
    program, option = _program(), "" if address == DEFAULT_BOOTSTRAP else f" --bootstrap {address}"
    print(f"  produce   echo hello | {program} produce greetings{option}")
    print(f"  consume   {program} consume greetings --from-beginning{option}")
    print("  stop      Ctrl-C", flush=True)


def _address(node: "RunningNode") -> str:
    """Return the address at which clients find the node."""
    first = node.endpoints[0]
    return address_text(first.host, first.port)


def _announce_to_programs(ready: str, **facts: Any) -> None:
    """Log the addresses as one JSON line, so that a program can parse every line."""
    from headrace.runtime.logging import JsonFormatter

    record = _log.makeRecord(_log.name, logging.INFO, __file__, 0, ready, (), None, extra=facts)
    print(JsonFormatter().format(record), flush=True)


def _program() -> str:
    """Return the program's path as a user would type it from the current folder."""
    from shutil import which

    called = sys.argv[0]
    if os.path.basename(called) != "headrace" or which("headrace") == os.path.abspath(called):
        return "headrace"
    return os.path.relpath(called)
