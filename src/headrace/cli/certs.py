"""`headrace certs`: make certificates for development, and show any certificate."""

import datetime as dt
import os
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.extras import require
from headrace.cli.options import json_option
from headrace.cli.output import print_json, print_line
from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text
from headrace.security.tls import reason_of

if TYPE_CHECKING:
    from headrace.cli.certificate_folder import Made
    from headrace.security.certificates import CertificateFacts

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

_ENDS_SOON_DAYS = 30


class NoCertificate(HeadraceError):
    """The server does not show a certificate."""


@click.group("certs", short_help="Make certificates for development, show any certificate.")
def command() -> None:
    """Make certificates for development, and show any certificate.

    \b
    headrace certs dev
    headrace certs show certs/ca.crt
    headrace certs show 127.0.0.1:9092
    """


@command.command("dev")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    default="certs",
    show_default=True,
    metavar="DIR",
    help="Folder of the files.",
)
@click.option(
    "--host",
    "hosts",
    metavar="HOST,...",
    multiple=True,
    help="A host that gets a certificate, with its further names; may be repeated. By default"
    " localhost.",
)
@click.option(
    "--user",
    "users",
    metavar="NAME",
    multiple=True,
    help="A user that gets a client certificate; may be repeated.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=365,
    show_default=True,
    help="Validity of the certificates.",
)
@click.option("--renew", is_flag=True, help="Make the named certificates again, by the same CA.")
@json_option
def dev(
    folder: str,
    hosts: tuple[str, ...],
    users: tuple[str, ...],
    days: int,
    renew: bool,
    as_json: bool,
) -> None:
    """Make a certificate authority, and certificates for hosts and users.

    The first call makes the authority. Later calls add certificates, and keep the valid ones. The
    authority is for development: its key is a file, and nothing revokes its certificates.

    \b
    headrace certs dev
    headrace certs dev --to certs --host kafka-1.lan --host kafka-2.lan --user ada
    headrace certs dev --host 'kafka,*.kafka.svc,kafka.example.com'
    """
    require("security")
    from headrace.cli.certificate_folder import CertificateFolder

    place = CertificateFolder(folder, dt.datetime.now(dt.UTC))
    made = [place.authority("Headrace development CA")]
    made += [
        place.certificate(host.partition(",")[0], names_of(host), days, renew=renew)
        for host in hosts or (LOCAL_HOSTS[:1] if not users else ())
    ]
    made += [place.certificate(user, (), days, renew=renew) for user in users]
    if as_json:
        print_json(made)
        return
    for one in made:
        print_line(f"{one.path}: {made_text(one)}")


@command.command("show")
@click.argument("place", metavar="FILE|HOST:PORT")
@click.option(
    "--ca",
    "ca_location",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Authorities to check a server's certificate by, instead of the system's.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Fail after this long.",
)
@json_option
def show(place: str, ca_location: str | None, timeout: float, as_json: bool) -> int:
    """Show the certificates of a file or of a server: owner, validity, names, authority.

    The exit code is 1 if a certificate is not valid now, or if a server's one is not trusted.

    \b
    headrace certs show certs/localhost.crt
    headrace certs show kafka.lan:9093 --ca certs/ca.crt
    """
    require("security")
    from headrace.security.certificates import read_certificates

    problem = None
    if os.path.exists(place):
        with open(place, "rb") as file:
            content = file.read()
    else:
        host, port = host_and_port(place)
        content = server_certificate(host, port, timeout)
        problem = trust_problem(host, port, timeout, ca_location)
    found = read_certificates(content)
    now = dt.datetime.now(dt.UTC)
    if as_json:
        print_json({"certificates": found, "problem": problem})
    else:
        for number, facts in enumerate(found):
            print_line(("\n" if number else "") + "\n".join(facts_lines(facts, now)))
        if problem is not None:
            print_line(f"not trusted  {problem}")
    return 0 if problem is None and all(one.is_valid(now) for one in found) else 1


def names_of(host: str) -> tuple[str, ...]:
    """Return the names of a host's certificate; this machine has several."""
    return LOCAL_HOSTS if host in LOCAL_HOSTS else tuple(host.split(","))


def made_text(made: "Made") -> str:
    """Describe a certificate of the folder."""
    facts = made.facts
    what = "authority" if facts.is_authority else facts.subject
    names = f" for {', '.join(facts.names)}" if facts.names else ""
    return f"{what}{names}, valid until {facts.not_after:%Y-%m-%d} ({made.reason or 'kept'})"


def facts_lines(facts: "CertificateFacts", now: dt.datetime) -> Iterator[str]:
    """Return the lines that describe a certificate."""
    yield f"subject      {facts.subject or '(empty)'}"
    if facts.names:
        yield f"names        {', '.join(facts.names)}"
    yield f"issuer       {'itself' if facts.is_self_signed else facts.issuer}"
    yield f"valid        {facts.not_before:%Y-%m-%d} to {facts.not_after:%Y-%m-%d %H:%M} UTC, " + (
        validity_text(facts, now)
    )
    yield f"authority    {'yes' if facts.is_authority else 'no'}"
    yield f"key          {facts.key}"
    yield f"fingerprint  {facts.fingerprint}"


def validity_text(facts: "CertificateFacts", now: dt.datetime) -> str:
    """Describe the time that a certificate has left."""
    if now < facts.not_before:
        return "NOT YET VALID"
    if now > facts.not_after:
        return "EXPIRED"
    days = facts.days_left(now)
    return f"{days} days left" + (", renew it soon" if days < _ENDS_SOON_DAYS else "")


def host_and_port(text: str) -> tuple[str, int]:
    """Parse an address; raise if the text is neither a file nor an address."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()):
        raise click.UsageError(f"{text!r} is neither a file nor of the form HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def server_certificate(host: str, port: int, timeout: float) -> bytes:
    """Return the certificates that a server shows, without trusting them.

    Python before 3.13 has only the first one, not those of intermediate authorities.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with connected(host, port, timeout, context) as stream:
            chain: Any = getattr(stream, "get_unverified_chain", None)
            if chain is not None:
                return "".join(map(ssl.DER_cert_to_PEM_cert, chain())).encode()
            certificate = stream.getpeercert(binary_form=True)
    except ssl.SSLError as error:
        raise NoCertificate(
            f"{address_text(host, port)} does not serve TLS, or needs a client certificate:"
            f" {reason_of(error)}"
        ) from error
    if certificate is None:
        raise NoCertificate(f"{address_text(host, port)} shows no certificate")
    return certificate


def trust_problem(host: str, port: int, timeout: float, ca_location: str | None) -> str | None:
    """Return why a client would reject the server's certificate; None if it is trusted."""
    context = ssl.create_default_context(cafile=ca_location)
    try:
        with connected(host, port, timeout, context):
            return None
    except ssl.SSLError as error:
        return reason_of(error)


def connected(host: str, port: int, timeout: float, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Connect and shake hands."""
    try:
        opened = socket.create_connection((host, port), timeout)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NoCertificate(f"cannot connect to {address_text(host, port)}: {reason}") from error
    try:
        return context.wrap_socket(opened, server_hostname=host)
    except BaseException:
        opened.close()
        raise
