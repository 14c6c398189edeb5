"""Options of commands that serve HTTP: authentication and TLS."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.cli.options import options_as

if TYPE_CHECKING:
    from headrace.http.access import Authentication
    from headrace.http.addresses import ListenAddress
    from headrace.http.tls import ServerTls

_log = logging.getLogger(__name__)

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class ListenerOptions(msgspec.Struct, frozen=True):
    """Values of `listener_options`."""

    tls_client_certificates: str
    token_file: Path | None = None
    user_file: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None

    def authentication(self) -> "Authentication":
        from headrace.http.access import Authentication, read_tokens
        from headrace.http.users import read_users

        return Authentication(
            tokens=None if self.token_file is None else read_tokens(self.token_file),
            users=None if self.user_file is None else read_users(self.user_file),
            certificates=self.tls_client_ca is not None,
        )

    def curl(self) -> str:
        """Return the beginning of a command that this listener answers."""
        parts = ["curl"]
        if self.tls_certificate is not None:
            authority = self.tls_certificate.with_name("ca.crt")
            named = os.path.relpath(authority) if authority.exists() else "CA.crt"
            parts += ["--cacert", quote(named)]
        if self.user_file is not None:
            parts += ["--user", "NAME"]
        elif self.token_file is not None:
            parts += ["--oauth2-bearer", "TOKEN"]
        return " ".join(parts)

    def tls(self) -> "ServerTls | None":
        from headrace.http.tls import ClientCertificates, ServerTls

        if self.tls_certificate is None:
            if self.tls_client_ca is not None:
                raise click.UsageError("--tls-client-ca needs --tls-certificate")
            return None
        has_authority = self.tls_client_ca is not None
        tls = ServerTls(
            certificate=self.tls_certificate,
            key=self.tls_key,
            client_authority=self.tls_client_ca,
            client_certificates=ClientCertificates(
                self.tls_client_certificates if has_authority else "none"
            ),
        )
        tls.context()  # Invalid files are reported before the port is taken.
        return tls


def listener_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--token-file`, `--user-file` and `--tls-...`, passed as `access`."""
    command = options_as(ListenerOptions, "access")(command)
    for option in reversed(
        (
            click.option(
                "--token-file",
                type=_FILE,
                help="Accept the lines of this file as bearer tokens.",
            ),
            click.option(
                "--user-file",
                type=_FILE,
                help="Accept the users of this file; `python -m headrace.http.users NAME` makes a"
                " line.",
            ),
            click.option(
                "--tls-certificate", type=_FILE, help="Serve TLS with this certificate (PEM)."
            ),
            click.option(
                "--tls-key",
                type=_FILE,
                help="Private key of the certificate, if it is in another file.",
            ),
            click.option(
                "--tls-client-ca",
                type=_FILE,
                help="Accept client certificates signed by this authority.",
            ),
            click.option(
                "--tls-client-certificates",
                type=click.Choice(["requested", "required"]),
                default="required",
                show_default=True,
                help="With --tls-client-ca: whether a client certificate is required.",
            ),
        )
    ):
        command = option(command)
    return command


def warn_of_exposure(
    address: "ListenAddress",
    authentication: "Authentication",
    tls: "ServerTls | None",
    allowed: str,
    *,
    login: str = "give --user-file, --token-file or --tls-client-ca",
    encryption: str = "give --tls-certificate",
) -> None:
    """Warn at the start if a listener is open or exposes secrets.

    `login` and `encryption` are the advice in terms of the command's options.
    """
    place = str(address)
    if not address.is_loopback and authentication.is_open:
        _log.warning(
            "listener open to the network",
            extra={"address": place, "anyone_may": allowed, "advice": login},
        )
    if not address.is_loopback and not authentication.is_open and tls is None:
        _log.warning(
            "secrets accepted over unencrypted HTTP",
            extra={"address": place, "advice": encryption},
        )
    for file in (authentication.tokens, authentication.users):
        if file is not None and file.is_open_to_others:
            _log.warning("file of secrets readable by other users", extra={"file": str(file.path)})
