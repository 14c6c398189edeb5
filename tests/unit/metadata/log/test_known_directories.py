"""The known log directories of a node, from its metadata."""

import asyncio
from pathlib import Path

import pytest

from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import UNASSIGNED_DIRECTORY, MetadataImage
from headrace.metadata.log.known_directories import known_directories, read_known_directories
from headrace.protocol.schemas.records.metadata import RegisterBrokerRecord, TopicRecord
from headrace.runtime import files
from headrace.runtime.files import DirectoryInUse
from headrace.storage.checkpoints import decode_identity
from tests.builders.metadata_images import directory_id, partition, topic_id
from tests.builders.metadata_nodes import formatted, started

NODE = 1
REGISTERED, LOST = directory_id(NODE), directory_id(7)


def image_with_partitions_in(*directories: bytes) -> MetadataImage:
    delta = ImageDelta(MetadataImage())
    delta.replay(RegisterBrokerRecord(broker_id=NODE, log_dirs=[REGISTERED]))
    delta.replay(TopicRecord("orders", topic_id("orders")))
    for index, directory in enumerate(directories):
        record = partition("orders", index)
        record.directories = [directory]
        delta.replay(record)
    return delta.image(1, 1, 0)


def test_a_directory_that_is_registered_is_known_though_it_is_empty() -> None:
    assert known_directories(image_with_partitions_in(), NODE) == {REGISTERED: 0}


def test_a_directory_that_partitions_name_is_known_though_it_is_not_registered() -> None:
    """LOG-19: a start without it has left it out of the registration."""
    image = image_with_partitions_in(REGISTERED, LOST, LOST, UNASSIGNED_DIRECTORY)
    assert known_directories(image, NODE) == {REGISTERED: 1, LOST: 2}


def test_a_node_that_never_ran_has_no_known_directories(tmp_path: Path) -> None:
    assert read_known_directories(str(formatted(tmp_path))) == {}
    assert read_known_directories(str(tmp_path / "nothing there")) == {}


def test_known_directories_are_read_from_the_metadata_log(tmp_path: Path) -> None:
    async def run() -> None:
        controller = await started(formatted(tmp_path))
        await controller.stop(NODE)

    asyncio.run(run())
    identity = decode_identity((tmp_path / "meta.properties").read_bytes())
    assert read_known_directories(str(tmp_path)) == {identity.directory_id: 0}


def test_the_log_of_a_running_broker_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> files.OpenFile:
        raise DirectoryInUse(path)

    monkeypatch.setattr(files, "lock", refuse)
    with pytest.raises(DirectoryInUse):
        read_known_directories(str(formatted(tmp_path)))
