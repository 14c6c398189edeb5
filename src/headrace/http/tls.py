"""TLS of a server: its certificate, and whether clients must show one of theirs.

A client's certificate is checked by OpenSSL against the given authority; what is left for us is
its subject, which becomes the name of who asks.
"""

import ssl
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import HeadraceError

CERTIFICATE_KEY = "headrace.client_certificate"
"""Where a connection's protocol leaves the subject in the state of each request."""

_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL = frozenset(',+"\\<>;')


class InvalidTls(HeadraceError):
    """Certificates or keys that cannot be used."""


class ClientCertificates(StrEnum):
    """Kafka's words (`ssl.client.auth`) for what is asked of clients."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class ServerTls(msgspec.Struct, frozen=True, kw_only=True):
    """Files in PEM form; the key may stand in the certificate's file."""

    certificate: Path
    key: Path | None = None
    key_password: str | None = None
    client_authority: Path | None = None
    client_certificates: ClientCertificates = ClientCertificates.NONE

    def context(self) -> ssl.SSLContext:
        """What the server speaks TLS with; a file that is wrong is told by its name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # Without a password OpenSSL would ask the terminal for it.
            context.load_cert_chain(self.certificate, self.key, self.key_password or "")
        except OSError as error:
            raise InvalidTls(
                f"the certificate {self.certificate} with its key cannot be used: {error}"
            ) from error
        if self.client_certificates is not ClientCertificates.NONE:
            self._ask_clients(context)
        return context

    def _ask_clients(self, context: ssl.SSLContext) -> None:
        if self.client_authority is None:
            raise InvalidTls("client certificates are checked against an authority: name its file")
        is_required = self.client_certificates is ClientCertificates.REQUIRED
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(self.client_authority)
        except OSError as error:
            raise InvalidTls(
                f"the authority {self.client_authority} cannot be used: {error}"
            ) from error


def certificate_principal(scope: Mapping[str, Any]) -> str | None:
    """The subject of the certificate that a client has shown."""
    found = scope.get("state", {}).get(CERTIFICATE_KEY)
    return found if isinstance(found, str) else None


def distinguished_name(certificate: Mapping[str, Any]) -> str | None:
    """The subject as Kafka writes it (RFC 2253): the most specific part first, as CN=ada,O=x."""
    subject = certificate.get("subject", ())
    parts = [
        "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in relative)
        for relative in reversed(subject)
    ]
    return ",".join(parts) or None


def _escaped(value: str) -> str:
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in value)
