"""Options of commands that serve HTTP: who may ask, and by TLS or not."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from headrace.http.access import Door
    from headrace.http.addresses import ListenAddress
    from headrace.http.tls import ServerTls

_log = logging.getLogger(__name__)

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class DoorFiles(NamedTuple):
    """What the options say, under their own names."""

    token_file: Path | None
    user_file: Path | None
    tls_certificate: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    tls_client_certificates: str

    def door(self) -> "Door":
        from headrace.http.access import Door, read_tokens
        from headrace.http.users import read_users

        return Door(
            tokens=None if self.token_file is None else read_tokens(self.token_file),
            users=None if self.user_file is None else read_users(self.user_file),
            certificates=self.tls_client_ca is not None,
        )

    def tls(self) -> "ServerTls | None":
        from headrace.http.tls import ClientCertificates, ServerTls

        if self.tls_certificate is None:
            if self.tls_client_ca is not None:
                raise click.UsageError("--tls-client-ca needs --tls-certificate")
            return None
        is_asked = self.tls_client_ca is not None
        tls = ServerTls(
            certificate=self.tls_certificate,
            key=self.tls_key,
            client_authority=self.tls_client_ca,
            client_certificates=(
                ClientCertificates(self.tls_client_certificates)
                if is_asked
                else ClientCertificates.NONE
            ),
        )
        tls.context()  # Wrong files are told before the port is taken.
        return tls


def door_options(command: _Command) -> _Command:
    """`--token-file`, `--user-file` and `--tls-...`."""
    for option in reversed(
        (
            click.option(
                "--token-file",
                type=_FILE,
                help="Let those in who send one of its lines as bearer token.",
            ),
            click.option(
                "--user-file",
                type=_FILE,
                help="Let its users in by password; `python -m headrace.http.users NAME` makes a"
                " line.",
            ),
            click.option(
                "--tls-certificate", type=_FILE, help="Speak TLS, with this certificate (PEM)."
            ),
            click.option("--tls-key", type=_FILE, help="Its key, where that is in another file."),
            click.option(
                "--tls-client-ca", type=_FILE, help="Let those in whom this authority has signed."
            ),
            click.option(
                "--tls-client-certificates",
                type=click.Choice(["requested", "required"]),
                default="required",
                show_default=True,
                help="Whether clients may come without one, if --tls-client-ca is given.",
            ),
        )
    ):
        command = option(command)
    return command


def warn_of_open_doors(
    address: "ListenAddress", door: "Door", tls: "ServerTls | None", doing: str
) -> None:
    """Say once, at the start, what a stranger could do."""
    if not address.is_loopback and door.is_open:
        _log.warning(
            "%s is open to the network: anyone who reaches it may %s; --user-file, --token-file or"
            " --tls-client-ca close it",
            *(address, doing),
        )
    if not address.is_loopback and not door.is_open and tls is None:
        _log.warning("%s takes secrets over unencrypted HTTP: give --tls-certificate", address)
    for file in (door.tokens, door.users):
        if file is not None and file.is_open_to_others:
            _log.warning("other users of this machine may read a file of secrets; chmod 600 helps")
