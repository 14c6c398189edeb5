"""Encryption and login of a connection, by librdkafka's setting names.

PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL; certificates and keys are PEM, in files or in the
settings themselves. Unsupported settings are rejected by name, never ignored.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.client import aws_tokens
from headrace.client.addresses import Address, BrokerUnreachable
from headrace.client.properties import (
    AWS_REGION,
    DELEGATION_TOKEN,
    InvalidProperty,
    names,
    unknown,
    with_librdkafkas_names,
)
from headrace.security.sasl import Exchange, oauthbearer, plain, scram

if TYPE_CHECKING:
    import ssl

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_OURS = ("sasl.", "ssl.", "security.", "enable.ssl.", "enable.sasl.")
_NONCE_BYTES = 24


class TlsFailed(BrokerUnreachable):
    """The broker does not support TLS, is not trusted, or does not trust the client."""


class NotSpoken(InvalidProperty):
    """A login that this client does not support, although librdkafka may."""


class Sasl(msgspec.Struct, frozen=True, kw_only=True):
    """Identity and credentials of the client."""

    mechanism: str
    username: str = ""
    password: str = ""
    token: Callable[[], str] | None = None
    by_delegation_token: bool = False
    """True if the name is the id of a delegation token, and the password its secret."""

    def exchange(self) -> Exchange:
        """Start a new authentication for one connection."""
        match self.mechanism:
            case "PLAIN":
                return plain.authenticate(self.username, self.password)
            case "OAUTHBEARER":
                assert self.token is not None
                return oauthbearer.authenticate(self.token())
            case _:
                return scram.authenticate(
                    scram.Mechanism(self.mechanism),
                    self.username,
                    self.password,
                    secrets.token_urlsafe(_NONCE_BYTES),
                    by_token=self.by_delegation_token,
                )

    def __repr__(self) -> str:
        return f"Sasl({self.mechanism}, {self.username or 'by token'})"


class Tls(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Trusted authorities and the client's certificate of TLS connections."""

    ca_location: str | None = None
    ca_pem: str | None = None
    certificate_location: str | None = None
    certificate_pem: str | None = None
    key_location: str | None = None
    key_pem: str | None = None
    key_password: str | None = None
    ciphers: str | None = None
    verify_certificate: bool = True
    verify_host: bool = True

    def __repr__(self) -> str:
        """Show locations only, so that no key or password gets into a log."""
        places = (self.ca_location, self.certificate_location, self.key_location)
        return f"Tls({', '.join(place or '-' for place in places)})"

    @cached_property
    def context(self) -> "ssl.SSLContext":
        """The TLS context, created once; an error names the invalid property."""
        import ssl

        context = ssl.create_default_context()
        context.check_hostname = self.verify_host and self.verify_certificate
        if not self.verify_certificate:
            context.verify_mode = ssl.CERT_NONE
        try:
            if self.ca_location is not None or self.ca_pem is not None:
                context = self._trusting(context)
            if self.ciphers is not None:
                context.set_ciphers(self.ciphers)
        except (OSError, ValueError) as error:
            raise InvalidProperty(f"ssl.ca.location or ssl.cipher.suites: {error}") from error
        self._show(context)
        return context

    def _trusting(self, system: "ssl.SSLContext") -> "ssl.SSLContext":
        """Trust only the given authorities, not those of the system."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = system.check_hostname, system.verify_mode
        location = self.ca_location
        is_directory = location is not None and os.path.isdir(location)
        context.load_verify_locations(
            None if is_directory else location, location if is_directory else None, self.ca_pem
        )
        return context

    def _show(self, context: "ssl.SSLContext") -> None:
        """Load the client's certificate, which Python reads from files only."""
        if self.certificate_location is None and self.certificate_pem is None:
            return
        import tempfile

        with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
            certificate = self.certificate_location or _written(
                directory, "certificate.pem", self.certificate_pem or ""
            )
            key = self.key_location
            if self.key_pem is not None:
                key = _written(directory, "key.pem", self.key_pem)
            try:
                # Without a password OpenSSL would prompt for one.
                context.load_cert_chain(certificate, key, self.key_password or "")
            except OSError as error:
                raise InvalidProperty(
                    f"ssl.certificate.location, ssl.key.location, ssl.key.password: {error}"
                ) from error


class Security(msgspec.Struct, frozen=True):
    """The part of the client settings that a connection needs."""

    tls: Tls | None = None
    sasl: Sasl | None = None

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> "Security":
        """Read the settings; unsupported protocols and mechanisms are errors."""
        given = with_librdkafkas_names(properties)
        _check_names(given)
        protocol = str(given.get("security.protocol", "PLAINTEXT")).upper()
        if protocol not in PROTOCOLS:
            raise InvalidProperty(
                f"security.protocol is {protocol!r}; it must be one of {', '.join(PROTOCOLS)}"
            )
        return cls(
            tls=_tls(given) if protocol.endswith("SSL") else None,
            sasl=_sasl(given) if protocol.startswith("SASL") else None,
        )

    def wrap(self, opened: socket.socket, address: Address) -> socket.socket:
        """Wrap a connected socket in TLS, if configured."""
        if self.tls is None:
            return opened
        import ssl

        try:
            return self.tls.context.wrap_socket(opened, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            raise TlsFailed(
                f"the certificate of {address} is not trusted: {error.verify_message}"
            ) from error
        except (ssl.SSLError, ConnectionResetError) as error:
            reason = getattr(error, "reason", None) or "it closed the connection"
            text = str(reason).lower().replace("_", " ")
            raise TlsFailed(f"no TLS connection to {address}: {text}") from error


def _tls(given: Mapping[str, Any]) -> Tls:
    if given.get("ssl.keystore.location"):
        raise NotSpoken(
            "ssl.keystore.location is not supported; set ssl.certificate.location and"
            " ssl.key.location to PEM files (openssl pkcs12 writes them)"
        )
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https")
    ca_location = given.get("ssl.ca.location")
    return Tls(
        ca_location=None if ca_location == "probe" else ca_location,
        ca_pem=given.get("ssl.ca.pem"),
        certificate_location=given.get("ssl.certificate.location"),
        certificate_pem=given.get("ssl.certificate.pem"),
        key_location=given.get("ssl.key.location"),
        key_pem=given.get("ssl.key.pem"),
        key_password=given.get("ssl.key.password"),
        ciphers=given.get("ssl.cipher.suites"),
        verify_certificate=_is_true(given.get("enable.ssl.certificate.verification", True)),
        verify_host=str(algorithm).lower() not in ("", "none"),
    )


def _sasl(given: Mapping[str, Any]) -> Sasl:
    # librdkafka accepts both spellings, and defaults to Kerberos.
    mechanism = str(given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        raise NotSpoken(
            f"sasl.mechanism {mechanism} is not supported; use one of {', '.join(MECHANISMS)}"
        )
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism=mechanism, token=_token_source(given))
    for name in ("sasl.username", "sasl.password"):
        if name not in given:
            raise InvalidProperty(f"sasl.mechanism {mechanism} needs {name}")
    return Sasl(
        mechanism=mechanism,
        username=str(given["sasl.username"]),
        password=str(given["sasl.password"]),
        by_delegation_token=_is_true(given.get(DELEGATION_TOKEN, False)),
    )


def _token_source(given: Mapping[str, Any]) -> Callable[[], str]:
    """Return a function for the token: the given one, or a new unsecured one each time."""
    if token := given.get("sasl.oauthbearer.token"):
        return lambda: str(token)
    if region := given.get(AWS_REGION):
        return lambda: aws_tokens.msk_token(str(region))
    if _is_true(given.get("enable.sasl.oauthbearer.unsecure.jwt", False)):
        config = dict(
            part.partition("=")[::2]
            for part in str(given.get("sasl.oauthbearer.config", "")).split()
        )
        if "principal" not in config:
            raise InvalidProperty("sasl.oauthbearer.config must name a principal: principal=admin")
        lifetime_s = int(config.get("lifeSeconds", 3600))
        return lambda: oauthbearer.unsecured_token(config["principal"], time.time(), lifetime_s)
    raise NotSpoken("sasl.mechanism OAUTHBEARER needs a token: set sasl.oauthbearer.token")


def _check_names(given: Mapping[str, Any]) -> None:
    """Reject misspelt names: a misspelt password would be ignored and the login would fail."""
    ours = [name for name in given if name.startswith(_OURS)]
    if ours:
        known = set(names())
        for name in ours:
            if name not in known:
                raise unknown(name)


def _written(directory: str, name: str, pem: str) -> str:
    path = os.path.join(directory, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(pem)
    return path


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"
