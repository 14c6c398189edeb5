"""TLS of a server: its certificate, and client certificates.

OpenSSL verifies a client's certificate against the given authority; its subject becomes the name
of the principal.
"""

import ssl
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import HeadraceError

CERTIFICATE_KEY = "headrace.client_certificate"
"""In the state of a request: the subject of the client's certificate."""

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
    """Unusable certificates or keys."""


class ClientCertificates(StrEnum):
    """Kafka's values of `ssl.client.auth`."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class ServerTls(msgspec.Struct, frozen=True, kw_only=True):
    """Files in PEM form; the certificate's file may include the key."""

    certificate: Path
    key: Path | None = None
    key_password: str | None = None
    client_authority: Path | None = None
    client_certificates: ClientCertificates = ClientCertificates.NONE

    def context(self) -> ssl.SSLContext:
        """Return the server's TLS context; errors name the invalid file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # Given no password at all, OpenSSL would prompt for it on the terminal.
            context.load_cert_chain(self.certificate, self.key, self.key_password or "")
        except OSError as error:
            raise InvalidTls(
                f"the certificate {self.certificate} with its key cannot be used: {error}"
            ) from error
        if self.client_certificates is not ClientCertificates.NONE:
            self._request_certificates(context)
        return context

    def _request_certificates(self, context: ssl.SSLContext) -> None:
        if self.client_authority is None:
            raise InvalidTls("client certificates need the file of the authority that signs them")
        is_required = self.client_certificates is ClientCertificates.REQUIRED
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(self.client_authority)
        except OSError as error:
            raise InvalidTls(
                f"the authority {self.client_authority} cannot be used: {error}"
            ) from error


def certificate_principal(scope: Mapping[str, Any]) -> str | None:
    """Return the subject of the client's certificate, if it sent one."""
    found = scope.get("state", {}).get(CERTIFICATE_KEY)
    return found if isinstance(found, str) else None


def distinguished_name(certificate: Mapping[str, Any]) -> str | None:
    """Return the subject as Kafka writes it (RFC 2253), most specific part first: CN=ada,O=x."""
    subject = certificate.get("subject", ())
    parts = [
        "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in relative)
        for relative in reversed(subject)
    ]
    return ",".join(parts) or None


def _escaped(value: str) -> str:
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in value)
