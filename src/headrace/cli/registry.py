"""`headrace registry`: a schema registry for any Kafka, until Ctrl-C."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.defaults import DEFAULT_REGISTRY
from headrace.cli.main import missing_text
from headrace.cli.options import (
    as_mapping,
    bootstrap_option,
    client_properties,
    command_config_option,
    property_option,
    set_option,
)
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.http.access import TokenFile
    from headrace.http.addresses import ListenAddress
    from headrace.registry.service import Registry

_log = logging.getLogger(__name__)


class MissingExtra(HeadraceError):
    """The packages that the registry needs are not installed."""


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
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Answer only those who send one of its lines as bearer token.",
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
    token_file: Path | None,
    log_format: str,
    configs: tuple[tuple[str, str], ...],
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
    _check_installed()

    from headrace.http.access import read_tokens
    from headrace.http.addresses import ListenAddress
    from headrace.registry.running import run
    from headrace.registry.settings import settings_of
    from headrace.runtime.supervision import end_with_parent

    end_with_parent()
    given = dict(as_mapping(configs))
    if advertise is not None:
        place = ListenAddress.parse(advertise)
        given |= {"host.name": place.host, "host.port": str(place.port)}
    address = ListenAddress.parse(listen)
    tokens = read_tokens(token_file) if token_file is not None else None
    _warn_of_open_doors(address, tokens)
    client = {"bootstrap.servers": bootstrap, **client_properties(command_config, properties)}
    announce = _announce if log_format == "text" else _announce_to_programs
    return run(client, settings_of(given), address, tokens, announce)


def _check_installed() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(missing_text(error.name or "uvicorn", "registry")) from error


def _warn_of_open_doors(address: "ListenAddress", tokens: "TokenFile | None") -> None:
    if not address.is_loopback and tokens is None:
        _log.warning(
            "%s is open to the network: anyone who reaches it may change schemas; give tokens with"
            " --token-file",
            address,
        )
    if tokens is not None and tokens.is_open_to_others:
        _log.warning("other users of this machine may read the token file; chmod 600 helps")


def _announce(address: "ListenAddress", registry: "Registry") -> None:
    """The first thing that a new user reads; other programs wait for its first line."""
    print(f"Headrace registry is ready on {address.url}")
    print(f"  topic     {registry.settings.kafkastore_topic}")
    print(f"  subjects  curl {address.url}/subjects")
    print("  stop      Ctrl-C", flush=True)


def _announce_to_programs(address: "ListenAddress", registry: "Registry") -> None:
    _log.info("Headrace registry is ready on %s", address.url)
