"""Requests of a node to the controller: its registration, and reports, which are retried.

Kafka's brokers repeat AssignReplicasToDirs and the failure of a directory in their heartbeats. The
controller rejects them while its disk is full or the registration is under way. Dropping a report
would leave the metadata wrong while the node runs. A disk may be full for days, so the attempts
never end; the waits between them grow to ten seconds.
"""

import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice

from headrace.errors import KafkaError
from headrace.metadata.features import SUPPORTED
from headrace.metadata.image import Endpoint, unused_endpoint
from headrace.protocol.message import Message
from headrace.protocol.schemas import broker_registration as broker
from headrace.protocol.schemas import controller_registration as controller
from headrace.protocol.schemas.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from headrace.protocol.uuids import Uuid, random_uuid
from headrace.runtime.addresses import bound_socket
from headrace.settings.broker import BrokerSettings
from headrace.settings.listener_security import listener_security
from headrace.settings.listeners import Listener

_log = logging.getLogger(__name__)

ASSIGNMENTS_MAX = 2_250
"""Replicas in one AssignReplicasToDirs request."""

_FIRST_WAIT_S = 0.1
_WAIT_S_MAX = 10.0


def endpoint_of(settings: BrokerSettings, listener: Listener, bound_port: int) -> Endpoint:
    """Return the address of a listener for other machines; its port may be any free one."""
    host = _reachable_host() if listener.is_every_interface else listener.host
    protocol = listener_security(settings, listener.name).protocol
    return Endpoint(listener.name, host, listener.port or bound_port, protocol)


def bind_controllers(settings: BrokerSettings) -> list[tuple[Endpoint, socket.socket]]:
    """Claim the ports of the controller listeners; return each with its advertised address."""
    bound: list[tuple[Endpoint, socket.socket]] = []
    if not settings.is_controller:
        return bound
    for listener in settings.controller_listeners:
        sock, port = bound_socket(listener.host, listener.port)
        advertised = settings.advertised.get(listener.name, listener)
        bound.append((endpoint_of(settings, advertised, port), sock))
    return bound


def controller_endpoint(settings: BrokerSettings) -> Endpoint:
    """The address of this node's controller; a quorum of one needs no connection to it."""
    for listener in settings.controller_listeners:
        advertised = settings.advertised.get(listener.name, listener)
        return endpoint_of(settings, advertised, listener.port)
    return unused_endpoint(settings.controller_listener_names[0])


def _reachable_host() -> str:
    """The host name of this machine, for listeners without one."""
    name = socket.getfqdn()
    if not name.startswith("localhost"):
        return name
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Sends no packet; it selects the local address.
        except OSError:
            return name
        return str(probe.getsockname()[0])


def controller_registration(
    node_id: int, endpoints: Sequence[Endpoint]
) -> controller.ControllerRegistrationRequest:
    """Register a new incarnation of a controller."""
    return controller.ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=random_uuid(),
        listeners=[
            controller.Listener(one.name, one.host, one.port, one.security_protocol)
            for one in endpoints
        ],
        features=[controller.Feature(name, *levels) for name, levels in SUPPORTED.items()],
    )


def broker_registration(
    node_id: int,
    cluster_id: str,
    endpoints: Sequence[Endpoint],
    *,
    log_dirs: list[Uuid],
    rack: str | None = None,
    previous_broker_epoch: int = -1,
) -> broker.BrokerRegistrationRequest:
    """Register a new incarnation of a broker.

    `previous_broker_epoch` is the last epoch if nothing written in it is lost.
    """
    return broker.BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=random_uuid(),
        listeners=[
            broker.Listener(one.name, one.host, one.port, one.security_protocol)
            for one in endpoints
        ],
        features=[broker.Feature(name, *levels) for name, levels in SUPPORTED.items()],
        rack=rack,
        log_dirs=log_dirs,
        previous_broker_epoch=previous_broker_epoch,
    )


def directory_assignments(
    node_id: int, broker_epoch: int, assigned: Mapping[tuple[Uuid, int], Uuid]
) -> Iterator[AssignReplicasToDirsRequest]:
    """Report the log directories of any number of replicas, in requests of Kafka's size."""
    replicas = iter(assigned.items())
    while some := dict(islice(replicas, ASSIGNMENTS_MAX)):
        yield directory_assignment(node_id, broker_epoch, some)


def directory_assignment(
    node_id: int, broker_epoch: int, assigned: Mapping[tuple[Uuid, int], Uuid]
) -> AssignReplicasToDirsRequest:
    """Report the log directory of each replica, by topic id and partition."""
    directories: dict[Uuid, dict[Uuid, list[int]]] = {}
    for (topic_id, index), directory in assigned.items():
        directories.setdefault(directory, {}).setdefault(topic_id, []).append(index)
    return AssignReplicasToDirsRequest(
        node_id,
        broker_epoch,
        [
            AssignReplicasToDirsRequestDirectoryData(
                directory,
                [
                    AssignReplicasToDirsRequestTopicData(
                        topic_id, [AssignReplicasToDirsRequestPartitionData(one) for one in indexes]
                    )
                    for topic_id, indexes in topics.items()
                ],
            )
            for directory, topics in directories.items()
        ],
    )


async def report(
    ask: Callable[[Message], Awaitable[object]],
    request: Message,
    name: str,
    wait: Callable[[float], Awaitable[None]],
) -> None:
    """Repeat a request until it is accepted; each attempt is decided on the newest metadata."""
    for attempt, pause_s in enumerate(waits()):
        try:
            await ask(request)
        except KafkaError as error:
            if not attempt:
                _log.warning(
                    "report to the controller rejected, retrying",
                    extra={"report": name, "error": str(error)},
                )
        else:
            return
        await wait(pause_s)


def waits() -> Iterator[float]:
    """The seconds to wait after each rejection."""
    pause_s = _FIRST_WAIT_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, _WAIT_S_MAX)
