"""`headrace rest`: Kafka over HTTP for any cluster, until Ctrl-C."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.defaults import DEFAULT_REST
from headrace.cli.main import missing_text
from headrace.cli.options import name_value
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.http.access import Door
    from headrace.http.addresses import ListenAddress
    from headrace.http.tls import ServerTls
    from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class MissingExtra(HeadraceError):
    """The packages that the proxy needs are not installed."""


@click.command("rest", short_help="Let HTTP clients produce, consume and administer.")
@click.option(
    "--bootstrap",
    "-b",
    envvar="HEADRACE_BOOTSTRAP",
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
@click.option("--token-file", type=_FILE, help="Let those in who send one of its lines as token.")
@click.option(
    "--user-file",
    type=_FILE,
    help="Let its users in by password; `python -m headrace.http.users NAME` makes a line.",
)
@click.option("--tls-certificate", type=_FILE, help="Speak TLS, with this certificate (PEM).")
@click.option("--tls-key", type=_FILE, help="Its key, where that is in another file.")
@click.option("--tls-client-ca", type=_FILE, help="Let those in whom this authority has signed.")
@click.option(
    "--tls-client-certificates",
    type=click.Choice(["requested", "required"]),
    default="required",
    show_default=True,
    help="Whether clients may come without one, if --tls-client-ca is given.",
)
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
    token_file: Path | None,
    user_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    tls_client_certificates: str,
    log_format: str,
) -> int:
    """Let HTTP clients produce, consume and administer, until Ctrl-C.

    By Confluent's interfaces, versions 2 and 3, for any Kafka cluster.

    \b
    headrace rest --bootstrap 127.0.0.1:9092 --registry http://127.0.0.1:8081
    curl -H 'Content-Type: application/vnd.kafka.json.v2+json' \\
         -d '{"records":[{"value":{"id":1}}]}' http://127.0.0.1:8082/topics/orders
    """
    _check_extra()

    from headrace.http.access import Door, read_tokens
    from headrace.http.addresses import ListenAddress
    from headrace.http.users import read_users
    from headrace.rest.running import run
    from headrace.rest.settings import settings_of
    from headrace.runtime.logging import configure
    from headrace.runtime.supervision import end_with_parent

    configure(log_format, ())
    end_with_parent()
    settings = settings_of(_properties(bootstrap, registry, config, dict(assignments)))
    address = ListenAddress.parse(listen)
    tls = _tls(tls_certificate, tls_key, tls_client_ca, tls_client_certificates)
    door = Door(
        tokens=None if token_file is None else read_tokens(token_file),
        users=None if user_file is None else read_users(user_file),
        certificates=tls_client_ca is not None,
    )
    _warn_of_open_doors(address, door, tls)
    scheme = "http" if tls is None else "https"
    announce = _announce if log_format == "text" else _announce_to_programs
    run(settings, address, door, tls, lambda bound: announce(f"{scheme}://{bound}", settings))
    return 0


def _check_extra() -> None:
    try:
        import uvicorn  # noqa: F401
        import wsproto  # noqa: F401
    except ImportError as error:
        raise MissingExtra(missing_text(error.name or "uvicorn", "rest")) from error


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


def _tls(
    certificate: Path | None, key: Path | None, authority: Path | None, clients: str
) -> "ServerTls | None":
    from headrace.http.tls import ClientCertificates, ServerTls

    if certificate is None:
        if authority is not None:
            raise click.UsageError("--tls-client-ca needs --tls-certificate")
        return None
    asked = ClientCertificates(clients) if authority is not None else ClientCertificates.NONE
    tls = ServerTls(
        certificate=certificate, key=key, client_authority=authority, client_certificates=asked
    )
    tls.context()  # Wrong files are told before the port is taken.
    return tls


def _warn_of_open_doors(address: "ListenAddress", door: "Door", tls: "ServerTls | None") -> None:
    if not address.is_loopback and door.is_open:
        _log.warning(
            "%s is open to the network: anyone who reaches it may read, write and delete topics;"
            " --user-file, --token-file or --tls-client-ca close it",
            address,
        )
    if not address.is_loopback and not door.is_open and tls is None:
        _log.warning("%s takes secrets over unencrypted HTTP: give --tls-certificate", address)
    for file in (door.tokens, door.users):
        if file is not None and file.is_open_to_others:
            _log.warning("other users of this machine may read a file of secrets; chmod 600 helps")


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
