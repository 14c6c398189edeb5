"""`headrace registry`: a schema registry for any Kafka, until Ctrl-C."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.defaults import DEFAULT_REGISTRY
from headrace.cli.doors import DoorFiles, door_options, warn_of_open_doors
from headrace.cli.extras import require
from headrace.cli.options import (
    as_mapping,
    bootstrap_option,
    client_properties,
    command_config_option,
    property_option,
    set_option,
)

if TYPE_CHECKING:
    from headrace.registry.service import Registry

_log = logging.getLogger(__name__)


@click.command("registry", short_help="Keep schemas in a topic, by Confluent's REST interface.")
@bootstrap_option
@command_config_option
@property_option
@click.option("--listen", default=DEFAULT_REGISTRY, show_default=True, metavar="HOST:PORT")
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    help="Where other instances reach this one; else where it listens.",
)
@door_options
@click.option(
    "--tls-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The authority of the other instances' certificates, where the system knows it not.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Whether people or programs read the log.",
)
@set_option("A setting by Confluent's name, as kafkastore.topic=_schemas; may be repeated.")
def command(
    bootstrap: str,
    command_config: str | None,
    properties: tuple[tuple[str, str], ...],
    listen: str,
    advertise: str | None,
    tls_ca: Path | None,
    log_format: str,
    configs: tuple[tuple[str, str], ...],
    **files: Any,
) -> int:
    """Keep schemas in a topic, by Confluent's REST interface, until Ctrl-C.

    Several instances with one topic are one registry: one of them writes, all answer.

    \b
    headrace registry
    headrace registry --bootstrap kafka-1:9092 --listen 0.0.0.0:8081
    headrace registry --set schema.compatibility.level=full
    curl http://127.0.0.1:8081/subjects
    """
    from headrace.runtime.logging import configure

    configure(log_format, ())
    require("registry")

    from headrace.http.addresses import ListenAddress
    from headrace.registry.running import Guard, run
    from headrace.registry.settings import settings_of
    from headrace.runtime.supervision import end_with_parent

    end_with_parent()
    given = dict(as_mapping(configs))
    if advertise is not None:
        place = ListenAddress.parse(advertise)
        given |= {"host.name": place.host, "host.port": str(place.port)}
    address = ListenAddress.parse(listen)
    doors = DoorFiles(**files)
    door, tls = doors.door(), doors.tls()
    if tls is not None:
        given.setdefault("inter.instance.protocol", "https")
    warn_of_open_doors(address, door, tls, "change schemas")
    client = {"bootstrap.servers": bootstrap, **client_properties(command_config, properties)}
    announce = _announce if log_format == "text" else _announce_to_programs
    return run(client, settings_of(given), address, Guard(door, tls, tls_ca), announce)


def _announce(url: str, registry: "Registry") -> None:
    """The first thing that a new user reads; other programs wait for its first line."""
    print(f"Headrace registry is ready on {url}")
    print(f"  topic     {registry.settings.kafkastore_topic}")
    print(f"  subjects  curl {url}/subjects")
    print("  stop      Ctrl-C", flush=True)


def _announce_to_programs(url: str, registry: "Registry") -> None:
    _log.info("Headrace registry is ready on %s", url)
