"""ListPartitionReassignments v0: the partitions that are moving to other replicas."""

from collections.abc import Iterator

from headrace.broker.api.registry import Call, api
from headrace.metadata.image import MetadataImage, TopicImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.DESCRIBE, ResourceType.CLUSTER),)


@api(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=range(1), rights=_RIGHTS)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, call: Call
) -> ListPartitionReassignmentsResponse:
    call.access.check_on_cluster(Operation.DESCRIBE)
    ongoing = []
    for topic, indexes in _asked(request, call.broker.image):
        partitions = _reassigning(topic, indexes)
        if partitions:
            ongoing.append(OngoingTopicReassignment(name=topic.name, partitions=partitions))
    return ListPartitionReassignmentsResponse(error_message=None, topics=ongoing)


def _asked(
    request: ListPartitionReassignmentsRequest, image: MetadataImage
) -> Iterator[tuple[TopicImage, range | list[int]]]:
    """The requested topics that exist; a null list selects all topics."""
    if request.topics is None:
        for topic in image.topics.values():
            yield topic, range(len(topic.partitions))
        return
    for asked in request.topics:
        found = image.topics.get(asked.name)
        if found is not None:
            yield found, [i for i in asked.partition_indexes if 0 <= i < len(found.partitions)]


def _reassigning(
    topic: TopicImage, indexes: range | list[int]
) -> list[OngoingPartitionReassignment]:
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding),
            removing_replicas=list(partition.removing),
        )
        for index in indexes
        if (partition := topic.partitions[index]).adding or partition.removing
    ]
