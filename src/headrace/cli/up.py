"""`headrace up`: start a node, say how to reach it, serve until Ctrl-C.

Plain argparse and few imports: this command's start is what a test suite waits for.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, InvalidConfig
from headrace.settings.broker import BrokerSettings, load
from headrace.settings.properties import parse, parse_assignment

if TYPE_CHECKING:
    from headrace.broker.node import Broker

_log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA = "headrace-data"
_LOOPBACK = ("127.", "localhost", "::1")


def main(arguments: Sequence[str]) -> int:
    """Run a node in the foreground; returns when it was asked to stop."""
    options = _parser().parse_args(arguments)
    settings, warnings = load(properties_of(options))

    from headrace.runtime.logging import configure

    configure(settings.headrace_log_format, settings.headrace_log_level)
    for warning in warnings:
        _log.warning("%s", warning)
    _warn_of_open_listeners(settings)

    from headrace.broker.node import run

    return run(settings, on_ready=_announce)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headrace up",
        description="Start a node and serve Kafka clients until Ctrl-C.",
    )
    parser.add_argument("--config", metavar="FILE", help="a server.properties with Kafka's names")
    parser.add_argument(
        "--data", metavar="DIR", help=f"where the logs are kept (default: ./{DEFAULT_DATA})"
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help=f"where clients connect (default: {DEFAULT_LISTEN}); port 0 takes any free one",
    )
    parser.add_argument(
        "--metrics", metavar="PORT", type=int, help="serve /metrics, /health and /ready there"
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set one property; wins over the file, may be repeated",
    )
    return parser


def properties_of(options: argparse.Namespace) -> dict[str, str]:
    """The properties that a command line stands for; the most specific word wins."""
    properties: dict[str, str] = {}
    if options.config is not None:
        properties |= _read_file(options.config)
    if options.data is not None:
        properties.pop("log.dir", None)
        properties["log.dirs"] = options.data
    if options.listen is not None:
        # An empty host stands for every interface, and the node finds out what to tell clients.
        every_interface = options.listen.removeprefix("0.0.0.0").removeprefix("[::]")
        properties["listeners"] = f"PLAINTEXT://{every_interface}"
        properties.pop("advertised.listeners", None)
    if options.metrics is not None:
        properties["headrace.metrics.port"] = str(options.metrics)
    properties |= dict(parse_assignment(assignment) for assignment in options.set)
    if "log.dirs" not in properties and "log.dir" not in properties:
        properties["log.dirs"] = DEFAULT_DATA
    properties.setdefault("listeners", f"PLAINTEXT://{DEFAULT_LISTEN}")
    return properties


def _read_file(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read())
    except OSError as error:
        raise InvalidConfig(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise HeadraceError(f"{path} is not UTF-8 text; save it as such") from error


def _warn_of_open_listeners(settings: BrokerSettings) -> None:
    for listener in settings.broker_listeners:
        if not listener.host.startswith(_LOOPBACK):
            _log.warning(
                "%s is open to the network without authentication or encryption: "
                "anyone who reaches it may read and write",
                listener,
            )


def _announce(broker: "Broker") -> None:
    """The first thing that a new user reads; other programs wait for its first line."""
    first = broker.endpoints[0]
    address = f"[{first.host}]:{first.port}" if ":" in first.host else f"{first.host}:{first.port}"
    print(f"Headrace is ready on {address}")
    print(f"  data      {', '.join(broker.settings.directories)}")
    if broker.metrics_address:
        print(f"  metrics   http://{broker.metrics_address}/metrics")
    program, option = _program(), "" if address == DEFAULT_LISTEN else f" --bootstrap {address}"
    print(f"  produce   echo hello | {program} produce greetings{option}")
    print(f"  consume   {program} consume greetings --from-beginning{option}")
    print("  stop      Ctrl-C", flush=True)


def _program() -> str:
    """How to call this program again from where the user is."""
    from shutil import which

    called = sys.argv[0]
    if os.path.basename(called) != "headrace" or which("headrace") == os.path.abspath(called):
        return "headrace"
    return os.path.relpath(called)
