"""`headrace up`: start a node, say how to reach it, serve until Ctrl-C.

Few imports at the top: this command's start is what a test suite waits for.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.defaults import DEFAULT_BOOTSTRAP, DEFAULT_DATA, DEFAULT_REGISTRY, DEFAULT_REST
from headrace.cli.file_systems import SHARED_ADVICE, is_shared
from headrace.errors import HeadraceError
from headrace.runtime.mounts import file_system
from headrace.settings.broker import BrokerSettings, load
from headrace.settings.properties import Property, parse_assignment, read_entries

if TYPE_CHECKING:
    from headrace.broker.node import Broker

_log = logging.getLogger(__name__)

_LOOPBACK = ("127.", "localhost", "::1")
_OPTIONS = {"listeners": ("--listen", "PORT"), "headrace.metrics.port": ("--metrics", "METRICS")}
"""The option of this command, and the variable of `make run`, that set an address."""
_PORT_MAX = 65535


def listen_address(text: str) -> str:
    """An option's value of the form `host:port`."""
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
@click.option("--data", metavar="DIR", help=f"Where the logs are kept; else ./{DEFAULT_DATA}.")
@click.option(
    "--listen",
    type=listen_address,
    metavar="HOST:PORT",
    help=f"Where clients connect; else {DEFAULT_BOOTSTRAP}. Port 0 takes any free one.",
)
@click.option(
    "--metrics",
    type=click.IntRange(0, _PORT_MAX),
    metavar="PORT",
    help="Serve /metrics, /health and /ready there.",
)
@click.option(
    "--registry",
    type=listen_address,
    is_flag=False,
    flag_value=DEFAULT_REGISTRY,
    metavar="[HOST:PORT]",
    help=f"Start a schema registry beside the node; on {DEFAULT_REGISTRY} if no more is said.",
)
@click.option(
    "--rest",
    type=listen_address,
    is_flag=False,
    flag_value=DEFAULT_REST,
    metavar="[HOST:PORT]",
    help=f"Start a REST proxy beside the node; on {DEFAULT_REST} if no more is said.",
)
@click.option(
    "--set",
    "-s",
    "assignments",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set one property; wins over the file, may be repeated.",
)
def command(config: str | None, assignments: tuple[str, ...], **options: Any) -> int:
    """Start a node and serve Kafka clients until Ctrl-C.

    \b
    headrace up
    headrace up --data /var/lib/headrace --listen 0.0.0.0:9092 --set log.retention.hours=24
    headrace up --config server.properties
    headrace up --registry --rest
    """
    entries = read_entries(config) if config is not None else []
    properties = properties_of(entries, assignments, **options)
    places = {entry.name: f"{config} line {entry.line}" for entry in entries}

    from headrace.runtime.logging import configure

    # What is wrong with the other settings is told in the format that was asked for, too.
    is_json = properties.get("headrace.log.format", "").strip() == "json"
    configure("json" if is_json else "text", ())
    try:
        return _run(properties, places)
    except HeadraceError as error:
        if not is_json:
            raise HeadraceError(advised(error)) from error
        _log.error("%s", advised(error))
        return 1


def properties_of(
    entries: Iterable[Property],
    assignments: Iterable[str],
    data: str | None = None,
    listen: str | None = None,
    metrics: int | None = None,
    registry: str | None = None,
    rest: str | None = None,
) -> dict[str, str]:
    """The properties that a command line stands for; the most specific word wins."""
    properties = {entry.name: entry.value for entry in entries}
    if data is not None:
        properties.pop("log.dir", None)
        properties["log.dirs"] = data
    if listen is not None:
        # An empty host stands for every interface, and the node finds out what to tell clients.
        every_interface = listen.removeprefix("0.0.0.0").removeprefix("[::]")
        properties["listeners"] = f"PLAINTEXT://{every_interface}"
        properties.pop("advertised.listeners", None)
    if metrics is not None:
        properties["headrace.metrics.port"] = str(metrics)
    if registry is not None:
        properties["headrace.registry.listeners"] = registry
    if rest is not None:
        properties["headrace.rest.listeners"] = rest
    properties |= dict(parse_assignment(assignment) for assignment in assignments)
    if "log.dirs" not in properties and "log.dir" not in properties:
        properties["log.dirs"] = DEFAULT_DATA
    properties.setdefault("listeners", f"PLAINTEXT://{DEFAULT_BOOTSTRAP}")
    return properties


def _run(properties: Mapping[str, str], places: Mapping[str, str]) -> int:
    settings, warnings = load(properties, places)

    from headrace.runtime.logging import configure

    configure(settings.headrace_log_format, settings.headrace_log_level)
    for warning in warnings:
        _log.warning("%s", warning)
    _warn_of_open_listeners(settings)
    warn_of_shared_disks((*settings.directories, settings.metadata_directory))

    from headrace.broker.node import run

    if not settings.headrace_registry_listeners and not settings.headrace_rest_listeners:
        return run(settings, on_ready=_announce)

    from headrace.cli.services import Beside

    beside = Beside(settings)

    def announce(broker: "Broker") -> None:
        _announce(broker)
        beside.start(_address(broker))

    return run(settings, on_ready=announce, before_stop=beside.stop)


def advised(error: HeadraceError) -> str:
    """The error, and which option of this command mends it."""
    found = _OPTIONS.get(getattr(error, "config_name", ""))
    if found is None:
        return str(error) or type(error).__name__
    option, variable = found
    return (
        f"{error}; choose another address with {option} (make run: {variable}=...),"
        " or stop what uses this one"
    )


def _warn_of_open_listeners(settings: BrokerSettings) -> None:
    for listener in settings.broker_listeners:
        if not listener.host.startswith(_LOOPBACK):
            _log.warning(
                "%s is open to the network without authentication or encryption: "
                "anyone who reaches it may read and write",
                listener,
            )


def warn_of_shared_disks(
    paths: Iterable[str], file_system_at: Callable[[str], str | None] = file_system
) -> None:
    """Say before the first record is stored what `headrace doctor` would have said."""
    for path in dict.fromkeys(paths):
        kind = file_system_at(path)
        if kind is not None and is_shared(kind):
            _log.warning("%s is on %s, shared or remote: %s", path, kind, SHARED_ADVICE)


def _announce(broker: "Broker") -> None:
    """The first thing that a new user reads; other programs wait for its first line."""
    address = _address(broker)
    ready = f"Headrace is ready on {address}"
    directories = broker.settings.directories
    metrics = f"http://{broker.metrics_address}/metrics" if broker.metrics_address else None
    if broker.settings.headrace_log_format == "json":
        _announce_to_programs(ready, data=list(directories), metrics=metrics)
        return
    print(ready)
    print(f"  data      {', '.join(directories)}")
    if metrics is not None:
        print(f"  metrics   {metrics}")
    program, option = _program(), "" if address == DEFAULT_BOOTSTRAP else f" --bootstrap {address}"
    print(f"  produce   echo hello | {program} produce greetings{option}")
    print(f"  consume   {program} consume greetings --from-beginning{option}")
    print("  stop      Ctrl-C", flush=True)


def _address(broker: "Broker") -> str:
    """Where clients find the node."""
    first = broker.endpoints[0]
    return f"[{first.host}]:{first.port}" if ":" in first.host else f"{first.host}:{first.port}"


def _announce_to_programs(ready: str, **facts: Any) -> None:
    """The same as one line of the log's own format: whoever asked for JSON parses every line."""
    from headrace.runtime.logging import JsonFormatter

    record = _log.makeRecord(_log.name, logging.INFO, __file__, 0, ready, (), None, extra=facts)
    print(JsonFormatter().format(record), flush=True)


def _program() -> str:
    """How to call this program again from where the user is."""
    from shutil import which

    called = sys.argv[0]
    if os.path.basename(called) != "headrace" or which("headrace") == os.path.abspath(called):
        return "headrace"
    return os.path.relpath(called)
