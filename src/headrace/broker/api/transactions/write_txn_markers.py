"""WriteTxnMarkers v1-2: end transactions in partitions that this node leads.

A coordinator on another node sends it for its decisions, and `kafka-transactions abort` for a
transaction that hangs because it has no coordinator. v2 adds the version of the transaction.
"""

from collections.abc import Iterator

from headrace.broker.api.registry import Call, api
from headrace.broker.markers import Ending
from headrace.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headrace.runtime.eager import eager, finish_each
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, for_request
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch

_RIGHTS = (
    for_request(
        Operation.CLUSTER_ACTION,
        ResourceType.CLUSTER,
        instead=(Alternative(Operation.ALTER, ResourceType.CLUSTER),),
    ),
)


@api(ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), rights=_RIGHTS)
@eager
async def write_txn_markers(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    """Write all markers, then wait until the in-sync replicas have them."""
    if not call.access.allows_on_cluster(Operation.ALTER, is_audited=False):
        call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    places = [
        (marker, TopicPartition(topic.name, index))
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    outcomes = iter(await finish_each(_write(marker, place, call) for marker, place in places))
    return WriteTxnMarkersResponse(
        markers=[_result(marker, outcomes) for marker in request.markers]
    )


async def _write(marker: WritableTxnMarker, place: TopicPartition, call: Call) -> None:
    producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)
    if min(producer) < 0:
        raise UnknownServerError("a marker needs a producer id and an epoch")
    ending = Ending(
        producer,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
    await call.broker.transactions.write_marker(ending, place)


def _code_of(outcome: KafkaError | None) -> int:
    if isinstance(outcome, NotLeaderOrFollower):
        return UnknownTopicOrPartition.code  # As in Kafka; both make the coordinator look again.
    return 0 if outcome is None else outcome.code


def _result(
    marker: WritableTxnMarker, outcomes: Iterator[KafkaError | None]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=_code_of(next(outcomes))
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
