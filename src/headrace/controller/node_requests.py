"""Requests of nodes for themselves: registration, heartbeats, producer ids."""

from collections.abc import Iterable
from typing import Protocol

from headrace.controller import registration
from headrace.controller.decision import Decision
from headrace.controller.heartbeats import heartbeat
from headrace.controller.registration import BrokerIdentity, ControllerIdentity
from headrace.controller.requests import Context
from headrace.errors import InconsistentClusterId, UnknownServerError
from headrace.metadata.features import VersionRange
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from headrace.protocol.schemas.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from headrace.protocol.schemas.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from headrace.protocol.schemas.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from headrace.protocol.schemas.records.metadata import ProducerIdsRecord

_PRODUCER_ID_BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = (1 << 63) - 1
_BEATS_MISSED = 1.5
"""Intervals between heartbeats after which a broker is silent."""


class _Listener(Protocol):
    name: str
    host: str
    port: int
    security_protocol: int


class _Feature(Protocol):
    name: str
    min_supported_version: int
    max_supported_version: int


def broker_registration(
    image: MetadataImage, request: BrokerRegistrationRequest, context: Context
) -> Decision[BrokerRegistrationResponse]:
    if context.cluster_id not in (None, request.cluster_id):
        raise InconsistentClusterId(
            f"broker {request.broker_id} belongs to cluster {request.cluster_id}, and this "
            f"controller to {context.cluster_id}"
        )
    broker = BrokerIdentity(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        endpoints=_endpoints(request.listeners),
        directories=request.log_dirs,
        rack=request.rack,
        features=_features(request.features),
        previous_broker_epoch=request.previous_broker_epoch,
    )
    sessions = context.sessions
    is_live = sessions is not None and sessions.is_live(request.broker_id, context.now_ms)
    if is_live and sessions is not None and registration.succeeds(image, broker):
        # A request of an earlier process may arrive late: heartbeats decide which one lives.
        silence_ms = context.settings.broker_heartbeat_interval_ms * _BEATS_MISSED
        is_live = sessions.is_live(request.broker_id, context.now_ms, silence_ms)
    records, epoch = registration.register_broker(
        image,
        broker,
        context.next_offset,
        context.defaults,
        has_live_session=is_live,
        kraft_version=context.kraft_version,
    )
    return Decision(records, BrokerRegistrationResponse(broker_epoch=epoch))


def controller_registration(
    image: MetadataImage, request: ControllerRegistrationRequest, context: Context
) -> Decision[ControllerRegistrationResponse]:
    controller = ControllerIdentity(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=_endpoints(request.listeners),
        features=_features(request.features),
    )
    records, _ = registration.register_controller(image, controller, context.kraft_version)
    return Decision(records, ControllerRegistrationResponse(error_message=None))


def broker_heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: Context
) -> Decision[BrokerHeartbeatResponse]:
    return heartbeat(image, request, context.defaults, context.sessions)


def allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest, context: Context
) -> Decision[AllocateProducerIdsResponse]:
    """Give a broker the next block of ids, so that most producers need no metadata record.

    The ids belong to that broker from then on, even if it never uses them.
    """
    registration.check_epoch(image, request.broker_id, request.broker_epoch)
    first = image.next_producer_id
    if first > _PRODUCER_ID_MAX - _PRODUCER_ID_BLOCK_SIZE:
        raise UnknownServerError("all producer ids have been used")
    end = first + _PRODUCER_ID_BLOCK_SIZE
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, end)
    response = AllocateProducerIdsResponse(
        producer_id_start=first, producer_id_len=_PRODUCER_ID_BLOCK_SIZE
    )
    return Decision([VersionedRecord(record)], response)


def _endpoints(listeners: Iterable[_Listener]) -> list[Endpoint]:
    return [Endpoint(one.name, one.host, one.port, one.security_protocol) for one in listeners]


def _features(features: Iterable[_Feature]) -> dict[str, VersionRange]:
    return {
        one.name: VersionRange(one.min_supported_version, one.max_supported_version)
        for one in features
    }
