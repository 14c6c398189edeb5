"""WriteTxnMarkers v1-2: a coordinator, or an administrator, ends transactions in our partitions.

A coordinator elsewhere sends it for what it has decided; `kafka-transactions abort` sends it for a
transaction that hangs because no coordinator knows of it. v2 says the transaction's version.
"""

from collections.abc import Callable

from headrace.broker.api.registry import Call, api
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
from headrace.transactions.coordinator import ProducerIdAndEpoch


def _refuse(
    request: WriteTxnMarkersRequest, error: KafkaError, version: int
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[_result(marker, lambda topic, index: error.code) for marker in request.markers]
    )


@api(ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), refuse=_refuse)
def write_txn_markers(request: WriteTxnMarkersRequest, call: Call) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(markers=[_write(marker, call) for marker in request.markers])


def _write(marker: WritableTxnMarker, call: Call) -> WritableTxnMarkerResult:
    producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)

    def write(topic: str, index: int) -> int:
        try:
            if min(producer) < 0:
                raise UnknownServerError("a marker ends the transaction of a producer with an id")
            call.broker.transactions.write_marker(
                (topic, index),
                producer,
                marker.coordinator_epoch,
                marker.transaction_version,
                is_commit=marker.transaction_result,
            )
        except NotLeaderOrFollower:
            return UnknownTopicOrPartition.code
        except KafkaError as error:
            return error.code
        return 0

    return _result(marker, write)


def _result(
    marker: WritableTxnMarker, code_of: Callable[[str, int], int]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=code_of(topic.name, index)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
