"""The metadata on the broker's loop, with the quorum on the same loop or on that of a thread."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace.broker.metadata import ClusterMetadata
from headrace.broker.registration import broker_registration
from headrace.errors import StaleBrokerEpoch
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.protocol.schemas.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.protocol.schemas.broker_registration import BrokerRegistrationRequest
from headrace.runtime.loop_thread import LoopThread
from tests.builders.metadata_quorums import CLUSTER_ID, directory_id
from tests.builders.quorum_nodes import HOST, bound, node_in, port_of


@pytest.fixture(params=["same loop", "thread"])
async def metadata(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[ClusterMetadata]:
    sock = bound()
    node = node_in(tmp_path, {1: port_of(sock)})
    thread = LoopThread("quorum") if request.param == "thread" else None
    metadata = ClusterMetadata(node, asyncio.get_running_loop(), thread)
    await metadata.run(node.start([sock]))
    yield metadata
    await metadata.run(node.close())
    if thread is not None:
        await thread.stop()


def registration() -> BrokerRegistrationRequest:
    endpoints = [Endpoint("PLAINTEXT", HOST, 9092)]
    return broker_registration(1, CLUSTER_ID, endpoints, log_dirs=[directory_id(1)])


async def registered(metadata: ClusterMetadata) -> int:
    epoch: int = (await metadata.ask(registration())).broker_epoch
    await metadata.wait_for(lambda image: 1 in image.brokers)
    return epoch


async def test_responses_come_back_and_images_follow(metadata: ClusterMetadata) -> None:
    epoch = await registered(metadata)
    assert metadata.image.brokers[1].epoch == epoch
    assert metadata.kraft_version == 1
    figures = metadata.figures()
    assert figures.is_active_controller
    assert (figures.state, figures.leader_id, figures.epoch) == ("leader", 1, 1)
    assert figures.commits.count >= 1
    assert metadata.failure is None


async def test_errors_come_back(metadata: ClusterMetadata) -> None:
    epoch = await registered(metadata)
    with pytest.raises(StaleBrokerEpoch):
        await metadata.ask(AllocateProducerIdsRequest(1, epoch - 1))


async def test_listeners_run_on_the_brokers_loop_in_order(metadata: ClusterMetadata) -> None:
    offsets: list[int] = []
    threads: set[str] = set()

    def listen(delta: ImageDelta, image: MetadataImage) -> None:
        threads.add(threading.current_thread().name)
        offsets.append(image.offset)

    metadata.on_published(listen)
    epoch = await registered(metadata)
    for _ in range(5):
        await metadata.ask(AllocateProducerIdsRequest(1, epoch))
    await metadata.wait_for(lambda image: image.next_producer_id == 5000)
    assert threads == {threading.current_thread().name}
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == metadata.image.offset


async def test_a_failing_listener_does_not_keep_images_from_others(
    metadata: ClusterMetadata,
) -> None:
    seen: list[int] = []

    def trip(delta: ImageDelta, image: MetadataImage) -> None:
        raise ValueError("tripped")

    metadata.on_published(trip)
    metadata.on_published(lambda delta, image: seen.append(image.offset))
    await registered(metadata)
    assert seen[-1] == metadata.image.offset


async def test_images_that_are_held_back_are_published_later(metadata: ClusterMetadata) -> None:
    epoch = await registered(metadata)
    before = metadata.image
    seen: list[int] = []
    metadata.on_published(lambda delta, image: seen.append(delta.base.offset))
    metadata.hold()
    await metadata.ask(AllocateProducerIdsRequest(1, epoch))
    for _ in range(5):
        await asyncio.sleep(0)
    assert metadata.image is before
    metadata.release()
    await metadata.wait_for(lambda image: image.next_producer_id == 1000)
    assert seen[0] == before.offset
