"""The server's side of GSSAPI (RFC 4752): logins by Kerberos tickets.

The tokens of the security context come first. Then the server offers security layers, of which
Kafka has none, and the client confirms that choice.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Protocol

from headrace.errors import InvalidConfig
from headrace.security.principals import USER, Principal
from headrace.security.sasl.kerberos_names import KerberosRules, NoRule
from headrace.security.sasl.server import Login, LoginRejected

_NO_LAYER = 1
_OFFER = bytes((_NO_LAYER, 0, 0, 0))  # No security layer, so messages after the login have no size.
_OFFER_BYTES = 4


class Context(Protocol):
    """A security context of the system's Kerberos library; it raises `GssFailed`."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def initiator(self) -> str: ...

    def step(self, token: bytes) -> bytes: ...

    def wrap(self, content: bytes) -> bytes: ...

    def unwrap(self, content: bytes) -> bytes: ...


class GssFailed(Exception):
    """The Kerberos library rejects a token."""


class _Phase(Enum):
    CONTEXT = auto()
    OFFER = auto()
    CHOICE = auto()
    OVER = auto()


class GssapiServer:
    """One login by a ticket."""

    def __init__(self, new_context: Callable[[], Context], rules: KerberosRules) -> None:
        self._context = new_context()
        self._rules = rules
        self._phase = _Phase.CONTEXT
        self.login: Login | None = None

    def answer(self, message: bytes) -> bytes:
        phase, self._phase = self._phase, _Phase.OVER
        try:
            match phase:
                case _Phase.CONTEXT:
                    return self._step(message)
                case _Phase.OFFER:
                    return self._offer(message)
                case _Phase.CHOICE:
                    return self._choice(message)
                case _Phase.OVER:
                    raise LoginRejected("the GSSAPI exchange is over")
        except GssFailed as error:
            raise LoginRejected(f"Kerberos rejects the ticket: {error}") from error

    def _step(self, token: bytes) -> bytes:
        answer = self._context.step(token)
        if not self._context.is_complete:
            self._phase = _Phase.CONTEXT
            return answer
        if not answer:
            return self._offer(b"")
        self._phase = _Phase.OFFER
        return answer

    def _offer(self, message: bytes) -> bytes:
        if message:
            raise LoginRejected("the client sends a token after the end of the context")
        self._phase = _Phase.CHOICE
        return self._context.wrap(_OFFER)

    def _choice(self, message: bytes) -> bytes:
        choice = self._context.unwrap(message)
        if len(choice) < _OFFER_BYTES or choice[0] != _NO_LAYER:
            raise LoginRejected("the client demands a security layer")
        initiator = self._context.initiator
        try:
            name = self._rules.short_name(initiator)
        except NoRule as error:
            raise LoginRejected(f"{initiator} has no name here: {error}") from error
        # As in Kafka, the ticket decides, and not the name that the client adds to its choice:
        # kafka-python and aiokafka add the name of the service.
        self.login = Login(Principal(USER, name))
        return b""


class _SystemContext:
    """A context of the package gssapi."""

    def __init__(self, gssapi: Any, credentials: Any) -> None:
        self._errors = gssapi.exceptions.GSSError
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")

    @property
    def is_complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def initiator(self) -> str:
        return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes:
        return self._call(lambda: self._context.step(token)) or b""

    def wrap(self, content: bytes) -> bytes:
        return self._call(lambda: self._context.wrap(content, encrypt=False).message) or b""

    def unwrap(self, content: bytes) -> bytes:
        return self._call(lambda: self._context.unwrap(content).message) or b""

    def _call(self, function: Callable[[], bytes | None]) -> bytes | None:
        try:
            return function()
        except self._errors as error:
            raise GssFailed(str(error)) from error


class Acceptor:
    """The keys of this node's service, which accept tickets."""

    def __init__(self, keytab: str, principal: str | None) -> None:
        self._gssapi = _package()
        name = None
        try:
            if principal:
                kind = self._gssapi.NameType.kerberos_principal
                name = self._gssapi.Name(principal, name_type=kind)
            self._credentials = self._gssapi.Credentials(
                name=name, usage="accept", store={"keytab": keytab}
            )
        except self._gssapi.exceptions.GSSError as error:
            raise InvalidConfig(f"the keytab {keytab} is not usable: {error}") from error

    def context(self) -> Context:
        return _SystemContext(self._gssapi, self._credentials)


def default_realm() -> str | None:
    """Return the realm of the system's Kerberos configuration, if it has one."""
    gssapi = _package()
    try:
        name = gssapi.Name("name", name_type=gssapi.NameType.user)
        text = str(name.canonicalize(gssapi.MechType.kerberos))
    except gssapi.exceptions.GSSError:
        return None
    return text.partition("@")[2] or None


def _package() -> Any:
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise InvalidConfig(
            "the mechanism GSSAPI needs the extra kerberos and the Kerberos library of the system "
            f"(libkrb5): {error}"
        ) from error
    return gssapi
