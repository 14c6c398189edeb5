"""`headrace rest`: access any Kafka cluster over HTTP, until Ctrl-C."""

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.defaults import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, DEFAULT_REST
from headrace.cli.extras import require
from headrace.cli.listener_options import ListenerOptions, listener_options, warn_of_exposure
from headrace.cli.options import (
    client_properties,
    command_config_option,
    log_format_option,
    name_value,
)

if TYPE_CHECKING:
    from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("rest", short_help="Run a REST proxy: produce, consume and administer over HTTP.")
@click.option(
    "--bootstrap",
    "-b",
    envvar=BOOTSTRAP_VARIABLE,
    metavar="HOST:PORT,...",
    show_default=DEFAULT_BOOTSTRAP,
    help="Brokers to connect to first.",
)
@click.option(
    "--listen",
    default=DEFAULT_REST,
    show_default=True,
    metavar="HOST:PORT",
    help="Address for clients.",
)
@click.option("--registry", metavar="URL", help="Schema registry, such as http://127.0.0.1:8081.")
@click.option("--config", type=_FILE, help="A kafka-rest.properties file with Confluent's names.")
@command_config_option
@click.option(
    "--set",
    "-s",
    "assignments",
    type=name_value,
    multiple=True,
    metavar="NAME=VALUE",
    help="Set one property, overriding the file; may be repeated.",
)
@listener_options
@log_format_option
def command(
    bootstrap: str | None,
    listen: str,
    registry: str | None,
    config: Path | None,
    command_config: str | None,
    assignments: tuple[tuple[str, str], ...],
    log_format: str,
    access: ListenerOptions,
) -> int:
    """Run a REST proxy until Ctrl-C: produce, consume and administer over HTTP.

    Serves Confluent's REST API, versions 2 and 3, for any Kafka cluster.

    \b
    headrace rest --bootstrap 127.0.0.1:9092 --registry http://127.0.0.1:8081
    curl -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
         -d '{"records":[{"value":{"id":1}}]}' http://127.0.0.1:8082/topics/orders
    """
    require("rest")

    from headrace.http.addresses import ListenAddress
    from headrace.http.product import Listener, run
    from headrace.rest.routes import running
    from headrace.rest.service import Service
    from headrace.rest.settings import settings_of
    from headrace.runtime.logging import configure
    from headrace.runtime.supervision import end_with_parent

    configure(log_format, ())
    end_with_parent()
    settings = settings_of(
        _properties(bootstrap, registry, config, command_config, dict(assignments))
    )
    address = ListenAddress.parse(listen)
    authentication, tls = access.authentication(), access.tls()
    warn_of_exposure(address, authentication, tls, "read, write and delete topics")
    is_text = log_format == "text"
    announce = partial(_announce, curl=access.curl()) if is_text else _announce_to_programs
    service, listener = Service(settings), Listener(address, authentication, tls)
    run(lambda _: running(service, authentication), listener, lambda url: announce(url, settings))
    return 0


def _properties(
    bootstrap: str | None,
    registry: str | None,
    config: Path | None,
    command_config: str | None,
    assigned: dict[str, str],
) -> dict[str, str]:
    """Return the properties of the files, overridden by options."""
    from headrace.settings.properties import read

    properties = _of_clients(client_properties(command_config))
    if config is not None:
        properties |= read(str(config))
    if bootstrap is not None:
        properties["bootstrap.servers"] = bootstrap
    if registry is not None:
        properties["schema.registry.url"] = registry
    return {**properties, **assigned}


def _of_clients(settings: dict[str, str]) -> dict[str, str]:
    """Return the settings of clients under the names of the proxy."""
    return {
        name if name == "bootstrap.servers" else f"client.{name}": value
        for name, value in settings.items()
    }


def _announce_to_programs(url: str, settings: "RestSettings") -> None:
    _log.info("REST proxy ready", extra={"url": url})


def _announce(url: str, settings: "RestSettings", curl: str) -> None:
    """Print the address and first commands; other programs wait for the first line."""
    print(f"Headrace REST proxy is ready on {url}")
    print(f"  brokers   {settings.bootstrap_servers}")
    if settings.schema_registry_url:
        print(f"  registry  {settings.schema_registry_url}")
    print(f"  topics    {curl} {url}/topics")
    print(f"  describes {url}/openapi.json")
    print("  stop      Ctrl-C", flush=True)
