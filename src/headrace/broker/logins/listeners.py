"""The logins of each listener of a node, and the gates of its data port."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from headrace.broker.api.cluster.api_versions import api_versions, refuse_version
from headrace.broker.api.registry import Call
from headrace.broker.logins.credentials import ImageCredentials, TokenLookup, no_tokens
from headrace.broker.logins.gate import Dispatch, Gate
from headrace.broker.logins.mechanisms import LoginMechanisms, decoy_key
from headrace.errors import KafkaError
from headrace.protocol.schemas.api_versions import ApiVersionsResponse
from headrace.security.sasl.listener import ListenerLogins
from headrace.security.sasl.reports import Audit, LoginReports
from headrace.security.token_credentials import TokenCredentials
from headrace.settings.listener_logins import mechanisms_of

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.connection import Connection
    from headrace.metadata.image import MetadataImage
    from headrace.protocol.framing import RequestHeader
    from headrace.protocol.schemas.api_versions import ApiVersionsRequest
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.security.sasl.authentication import AnswerVersions
    from headrace.security.sasl.reports import LoginMetrics
    from headrace.settings.broker import BrokerSettings
    from headrace.settings.listeners import Listener


class NodeLogins:
    """The logins of some SASL listeners of one node."""

    def __init__(
        self,
        settings: "BrokerSettings",
        listeners: "Iterable[Listener]",
        *,
        cluster_id: Callable[[], str],
        image: "Callable[[], MetadataImage]",
        clock: "Clock",
        audit: Audit | None = None,
    ) -> None:
        self._audit = audit
        secret_key = settings.delegation_token_secret_key
        tokens: TokenLookup = no_tokens
        if secret_key:
            tokens = TokenCredentials(
                secret_key, lambda: image().delegation_tokens, clock.now_ms
            ).of_token
        self._mechanisms = LoginMechanisms(
            settings,
            ImageCredentials(image, tokens),
            clock,
            cache(lambda: decoy_key(cluster_id(), secret_key)),
        )
        self._clock = clock
        self.by_listener: Mapping[str, ListenerLogins] = {
            listener.name: self._logins(settings, listener.name) for listener in listeners
        }

    def _logins(self, settings: "BrokerSettings", listener: str) -> ListenerLogins:
        return ListenerLogins(
            self._mechanisms.of(listener),
            mechanisms_of(settings, listener)[0].value("sasl.server.max.receive.size"),
            settings.connection_failed_authentication_delay_ms,
            LoginReports(listener, self._clock.monotonic_ms, self._audit),
            self._clock.now_ms,
        )

    def watch(self, tasks: "Tasks") -> None:
        """Watch files and key sets from now on."""
        self._mechanisms.watch(tasks)

    async def watching(self, tasks: "Tasks") -> None:
        """Watch files and key sets; a coroutine, for an event loop in another thread."""
        self.watch(tasks)

    @property
    def metrics(self) -> "dict[str, LoginMetrics]":
        """The counters by listener."""
        return {name: one.reports.metrics for name, one in self.by_listener.items()}


def gates_of(logins: NodeLogins, broker: "Broker", dispatch: Dispatch) -> dict[str, Gate]:
    """Return the gate of each SASL listener of the data port."""
    return {
        name: Gate(
            one,
            dispatch=dispatch,
            versions_for=lambda connection: _versions(broker, connection),
            loop=broker.loop,
            clock=broker.clock,
        )
        for name, one in logins.by_listener.items()
    }


def _versions(broker: "Broker", connection: "Connection") -> "AnswerVersions":
    def answer(
        header: "RequestHeader", request: "ApiVersionsRequest | None"
    ) -> ApiVersionsResponse:
        if request is None:
            return refuse_version()
        call = Call(broker, connection, header.api_version, header.client_id)
        try:
            return api_versions(request, call)
        except KafkaError as error:
            return ApiVersionsResponse(error_code=error.code)

    return answer
