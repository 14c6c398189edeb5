"""DescribeLogDirs v1-5: the log directories, their space, and the partitions in them.

v4 adds the total and usable bytes of the disk (KIP-827), v5 a mark of directories that accept no
new partitions. A failed directory has an error and no other field.
"""

from collections.abc import Callable
from os.path import abspath

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaStorageError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from headrace.runtime import files
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request
from headrace.storage.directory import LogDirectory
from headrace.storage.topic_partition import TopicPartition

_RIGHTS = (for_request(Operation.DESCRIBE, ResourceType.CLUSTER),)


@api(ApiKey.DESCRIBE_LOG_DIRS, versions=range(1, 6), rights=_RIGHTS)
def describe_log_dirs(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    call.access.check_on_cluster(Operation.DESCRIBE)
    is_asked = _filter(request)
    return DescribeLogDirsResponse(
        results=[_describe(one, is_asked) for one in call.broker.directories.directories]
    )


def _filter(request: DescribeLogDirsRequest) -> Callable[[TopicPartition], bool]:
    """The filter of a request; a null list selects all partitions."""
    if request.topics is None:
        return lambda topic_partition: True
    asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return lambda topic_partition: topic_partition in asked


def _describe(
    directory: LogDirectory, is_asked: Callable[[TopicPartition], bool]
) -> DescribeLogDirsResult:
    path = abspath(directory.path)
    if directory.failure is not None:
        return DescribeLogDirsResult(error_code=KafkaStorageError.code, log_dir=path)
    try:
        total_bytes, usable_bytes = files.space(directory.path)
    except OSError:
        return DescribeLogDirsResult(error_code=KafkaStorageError.code, log_dir=path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=_topics(directory, is_asked),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _topics(
    directory: LogDirectory, is_asked: Callable[[TopicPartition], bool]
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for topic_partition, log in directory.logs.items():
        if not is_asked(topic_partition):
            continue
        topic = topics.setdefault(
            topic_partition.topic, DescribeLogDirsTopic(name=topic_partition.topic)
        )
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=topic_partition.partition, partition_size=log.size_bytes
            )
        )
    return list(topics.values())
