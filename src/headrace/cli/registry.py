"""`headrace registry`: run a schema registry for any Kafka, until Ctrl-C."""

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.cli.defaults import DEFAULT_REGISTRY
from headrace.cli.extras import require
from headrace.cli.listener_options import ListenerOptions, listener_options, warn_of_exposure
from headrace.cli.options import ClusterOptions, as_mapping, options_as

if TYPE_CHECKING:
    from headrace.registry.service import Registry

_log = logging.getLogger(__name__)


@click.command("registry", short_help="Run a schema registry with Confluent's REST interface.")
@options.bootstrap_option
@options.command_config_option
@options.property_option
@click.option(
    "--listen",
    default=DEFAULT_REGISTRY,
    show_default=True,
    metavar="HOST:PORT",
    help="Address for clients.",
)
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    show_default="the address of --listen",
    help="Address of this instance for others.",
)
@listener_options
@click.option(
    "--tls-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Authority of the other instances' certificates, if the system does not trust it.",
)
@options.log_format_option
@options.set_option(
    "A setting by Confluent's name, such as kafkastore.topic=_schemas; may be repeated."
)
@options_as(ClusterOptions, "cluster")
def command(
    cluster: ClusterOptions,
    listen: str,
    advertise: str | None,
    tls_ca: Path | None,
    log_format: str,
    configs: tuple[tuple[str, str], ...],
    access: ListenerOptions,
) -> int:
    """Run a schema registry with Confluent's REST interface, until Ctrl-C.

    Schemas are stored in a Kafka topic. Instances with the same topic form one registry: one of
    them writes, all answer.

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
    from headrace.http.product import Listener, run
    from headrace.registry.leadership.forwarding import forwarding_context
    from headrace.registry.routes.application import running
    from headrace.registry.service import Registry
    from headrace.registry.settings import settings_of
    from headrace.runtime.supervision import end_with_parent

    end_with_parent()
    given = dict(as_mapping(configs))
    if advertise is not None:
        place = ListenAddress.parse(advertise)
        given |= {"host.name": place.host, "host.port": str(place.port)}
    address = ListenAddress.parse(listen)
    authentication, tls = access.authentication(), access.tls()
    if tls is not None:
        given.setdefault("inter.instance.protocol", "https")
    warn_of_exposure(address, authentication, tls, "change schemas")
    client = {"bootstrap.servers": cluster.bootstrap, **cluster.settings()}
    is_text = log_format == "text"
    announce = partial(_announce, curl=access.curl()) if is_text else _announce_to_programs
    registry = Registry(client, settings_of(given), tls=forwarding_context(tls, tls_ca))
    listener = Listener(address, authentication, tls)
    run(
        lambda bound: running(registry, authentication, bound),
        listener,
        lambda url: announce(url, registry),
    )
    return 0 if registry.failure is None else 1


def _announce(url: str, registry: "Registry", curl: str) -> None:
    """Print the address and first commands; other programs wait for the first line."""
    print(f"Headrace registry is ready on {url}")
    print(f"  topic     {registry.settings.kafkastore_topic}")
    print(f"  subjects  {curl} {url}/subjects")
    print("  stop      Ctrl-C", flush=True)


def _announce_to_programs(url: str, registry: "Registry") -> None:
    _log.info("registry ready", extra={"url": url})
