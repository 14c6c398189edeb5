"""`headrace rest`: Kafka over HTTP for any cluster, until Ctrl-C."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.defaults import BOOTSTRAP_VARIABLE, DEFAULT_REST
from headrace.cli.doors import DoorFiles, door_options, warn_of_open_doors
from headrace.cli.extras import require
from headrace.cli.options import name_value

if TYPE_CHECKING:
    from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("rest", short_help="Let HTTP clients produce, consume and administer.")
@click.option(
    "--bootstrap",
    "-b",
    envvar=BOOTSTRAP_VARIABLE,
    metavar="HOST:PORT,...",
    help="Brokers to ask first; else 127.0.0.1:9092.",
)
@click.option("--listen", default=DEFAULT_REST, show_default=True, metavar="HOST:PORT")
@click.option("--registry", metavar="URL", help="Where schemas are, as http://127.0.0.1:8081.")
@click.option("--config", type=_FILE, help="A kafka-rest.properties with Confluent's names.")
@click.option(
    "--set",
    "-s",
    "assignments",
    type=name_value,
    multiple=True,
    metavar="NAME=VALUE",
    help="Set one property; wins over the file, may be repeated.",
)
@door_options
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Whether people or programs read the log.",
)
def command(
    bootstrap: str | None,
    listen: str,
    registry: str | None,
    config: Path | None,
    assignments: tuple[tuple[str, str], ...],
    log_format: str,
    **files: Any,
) -> int:
    """Let HTTP clients produce, consume and administer, until Ctrl-C.

    By Confluent's interfaces, versions 2 and 3, for any Kafka cluster.

    \b
    headrace rest --bootstrap 127.0.0.1:9092 --registry http://127.0.0.1:8081
    curl -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
         -d '{"records":[{"value":{"id":1}}]}' http://127.0.0.1:8082/topics/orders
    """
    require("rest")

    from headrace.http.addresses import ListenAddress
    from headrace.rest.running import run
    from headrace.rest.settings import settings_of
    from headrace.runtime.logging import configure
    from headrace.runtime.supervision import end_with_parent

    configure(log_format, ())
    end_with_parent()
    settings = settings_of(_properties(bootstrap, registry, config, dict(assignments)))
    address = ListenAddress.parse(listen)
    doors = DoorFiles(**files)
    door, tls = doors.door(), doors.tls()
    warn_of_open_doors(address, door, tls, "read, write and delete topics")
    scheme = "http" if tls is None else "https"
    announce = _announce if log_format == "text" else _announce_to_programs
    run(settings, address, door, tls, lambda bound: announce(f"{scheme}://{bound}", settings))
    return 0


def _properties(
    bootstrap: str | None, registry: str | None, config: Path | None, assigned: dict[str, str]
) -> dict[str, str]:
    """The file, above it what the command line says."""
    from headrace.settings.properties import read

    properties = {} if config is None else read(str(config))
    if bootstrap is not None:
        properties["bootstrap.servers"] = bootstrap
    if registry is not None:
        properties["schema.registry.url"] = registry
    return {**properties, **assigned}


def _announce_to_programs(url: str, settings: "RestSettings") -> None:
    _log.info("Headrace REST proxy is ready on %s", url)


def _announce(url: str, settings: "RestSettings") -> None:
    """The first thing that a new user reads; other programs wait for its first line."""
    print(f"Headrace REST proxy is ready on {url}")
    print(f"  brokers   {settings.bootstrap_servers}")
    if settings.schema_registry_url:
        print(f"  registry  {settings.schema_registry_url}")
    print(f"  topics    curl {url}/topics")
    print(f"  describes {url}/openapi.json")
    print("  stop      Ctrl-C", flush=True)
