"""TLS contexts of a listener: for the server, and for connections to other nodes.

A listener's contexts are replaced as a whole when its files or its properties change. Connections
keep the context with which they began. If new files cannot be used, the old contexts stay.
"""

import ssl
import time
from typing import NamedTuple

from headrace.errors import InvalidTls
from headrace.runtime.memory_files import memory_file
from headrace.security.certificate_names import Certificate, certificates_in, read_certificate
from headrace.security.cipher_suites import by_version
from headrace.security.key_stores import TlsMaterial, read_material
from headrace.security.principal_mapping import PrincipalMapping
from headrace.security.principals import ANONYMOUS, USER, Principal
from headrace.settings.listener_security import TlsSettings

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_HANDSHAKE_STEPS_MAX = 10


class TlsContexts(NamedTuple):
    """The contexts of one listener, and the certificate in them."""

    settings: TlsSettings
    material: TlsMaterial
    server: ssl.SSLContext | None
    """None without a key: the node only connects to others."""
    client: ssl.SSLContext
    certificate: Certificate | None


class ListenerTls:
    """The contexts of one listener in force."""

    def __init__(
        self,
        listener: str,
        settings: TlsSettings,
        *,
        is_between_nodes: bool,
        names_principals: bool = True,
    ) -> None:
        """Read the files; raise `InvalidTls` if they cannot be used.

        Between nodes, a certificate must be trusted by the listener's own truststore. With logins
        by SASL certificates name no principals.
        """
        self.listener = listener
        self._is_between_nodes = is_between_nodes
        self._names_principals = names_principals
        self._mapping = PrincipalMapping(settings.principal_mapping_rules)
        self._contexts = self._made(settings, read_material(settings))
        if is_between_nodes:
            self._check_trust(self._contexts, self._contexts)

    @property
    def settings(self) -> TlsSettings:
        return self._contexts.settings

    @property
    def certificate(self) -> Certificate | None:
        """The own certificate of the listener."""
        return self._contexts.certificate

    @property
    def server(self) -> ssl.SSLContext:
        """The context for accepted connections."""
        context = self._contexts.server
        assert context is not None, "an open listener has a key"
        return context

    @property
    def client(self) -> ssl.SSLContext:
        """The context for connections to the same listener of other nodes."""
        return self._contexts.client

    def principal_of(self, connection: ssl.SSLSocket | ssl.SSLObject) -> Principal:
        """Return the principal of a client; raise `NoMatchingRule` if no rule names it."""
        der = connection.getpeercert(binary_form=True)
        if der is None or not self._names_principals:
            return ANONYMOUS
        return Principal(USER, self._mapping.name_of(read_certificate(der).subject))

    def check(self, settings: TlsSettings) -> TlsContexts:
        """Return contexts by new settings or files; raise `InvalidTls` if they cannot replace."""
        present = self._contexts
        contexts = self._made(settings, read_material(settings))
        _check_replacement(self.listener, present, contexts)
        if self._is_between_nodes:
            self._check_trust(present, contexts)
            self._check_trust(contexts, present)
        return contexts

    def replace(self, settings: TlsSettings) -> bool:
        """Apply new settings or files; return false if nothing has changed.

        If it raises `InvalidTls`, the contexts in force stay.
        """
        present = self._contexts
        if settings == present.settings and read_material(settings) == present.material:
            return False
        self._contexts = self.check(settings)
        return True

    def _made(self, settings: TlsSettings, material: TlsMaterial) -> TlsContexts:
        try:
            server = None if material.keys is None else _server_context(settings, material)
            client = _client_context(settings, material)
        except (OSError, ValueError) as error:
            raise InvalidTls(f"TLS of listener {self.listener}: {error}") from error
        certificate = None
        if material.keys is not None and (found := certificates_in(material.keys)):
            certificate = read_certificate(found[0])
        return TlsContexts(settings, material, server, client, certificate)

    def _check_trust(self, client: TlsContexts, server: TlsContexts) -> None:
        """Raise unless a node with one context can connect to a node with the other."""
        if server.server is None:
            return
        try:
            _shake_hands(_without_host(client), server.server)
        except ssl.SSLError as error:
            raise InvalidTls(
                f"TLS of listener {self.listener}: nodes with these certificates do not trust "
                f"each other ({reason_of(error)}); add their authority to the truststore"
            ) from error


def reason_of(error: ssl.SSLError) -> str:
    """Return the reason of a failed handshake in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).lower().replace("_", " ")


def _server_context(settings: TlsSettings, material: TlsMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    # Renegotiation would let a client make the node compute again and again.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 1
    _load(context, settings, material)
    return context


def _client_context(settings: TlsSettings, material: TlsMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(settings.endpoint_identification_algorithm)
    _load(context, settings, material)
    return context


def _load(context: ssl.SSLContext, settings: TlsSettings, material: TlsMaterial) -> None:
    _restrict(context, settings)
    # As in Java, any trusted certificate is an anchor, also one that another has signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if material.keys is not None:
        with memory_file(material.keys) as path:
            # Without a password OpenSSL would prompt for one.
            context.load_cert_chain(path, password=material.key_password or "")
    if material.trusted is not None:
        with memory_file(material.trusted) as path:
            context.load_verify_locations(path)
    elif context.verify_mode is not ssl.CERT_NONE:
        context.load_default_certs()
    if material.revoked is not None:
        with memory_file(material.revoked) as path:
            context.load_verify_locations(path)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _restrict(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set versions and cipher suites; a version without a suite is disabled.

    Python cannot choose among the suites of TLS 1.3, all of which are secure.
    """
    suites = by_version(settings.cipher_suites)
    versions = list(settings.versions)
    if settings.cipher_suites:
        kept = {"TLSv1.2": suites.tls_1_2, "TLSv1.3": suites.tls_1_3}
        versions = [version for version in versions if kept[version]]
    if not versions:
        raise ValueError("ssl.cipher.suites has none of the versions in ssl.enabled.protocols")
    context.minimum_version = _VERSIONS[versions[0]]
    context.maximum_version = _VERSIONS[versions[-1]]
    if suites.tls_1_2:
        try:
            context.set_ciphers(":".join(suites.tls_1_2))
        except ssl.SSLError as error:
            names = ", ".join(settings.cipher_suites)
            raise ValueError(f"ssl.cipher.suites: no suite of {names} is supported") from error


def _check_replacement(listener: str, present: TlsContexts, wanted: TlsContexts) -> None:
    """Check Kafka's rules for certificates that change while a listener is open."""
    old, new, settings = present.certificate, wanted.certificate, wanted.settings
    where = f"the new keystore of listener {listener}"
    if (old is None) != (new is None):
        raise InvalidTls(f"{where}: a key cannot be added or removed without a restart")
    if old is None or new is None:
        return
    if new.expires_s <= time.time():
        raise InvalidTls(f"{where}: its certificate has expired")
    if not settings.allow_dn_changes and new.subject != old.subject:
        raise InvalidTls(
            f"{where}: its subject is {new.subject}, not {old.subject}; set "
            "ssl.allow.dn.changes=true to allow that"
        )
    if not settings.allow_san_changes and not old.alternative_names <= new.alternative_names:
        raise InvalidTls(
            f"{where}: it lacks some of the subject alternative names of the present one; set "
            "ssl.allow.san.changes=true to allow that"
        )
    if present.material.trusted is None and wanted.material.trusted is not None:
        raise InvalidTls(f"{where}: a truststore cannot be added without a restart")


def _without_host(contexts: TlsContexts) -> ssl.SSLContext:
    """Return a client's context that verifies certificates and no host names."""
    unnamed = _client_context(contexts.settings, contexts.material)
    unnamed.check_hostname = False
    return unnamed


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Connect two contexts in memory; raise `ssl.SSLError` if one rejects the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done: set[ssl.SSLObject] = set()
    for _ in range(_HANDSHAKE_STEPS_MAX):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            done.add(end)
        if len(done) == len(ends):
            return
    raise ssl.SSLError("the handshake does not end")
