"""Controllers over replicas on disk, in storms: acknowledged changes stay, and images agree.

The raft core has a simulation of its own. This one adds the files, the snapshots, the controllers
with their proposed and committed states, and the images that they publish.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from headrace.errors import KafkaError
from headrace.metadata.image import MetadataImage
from headrace.metadata.log.metadata_log import MetadataLogSettings
from headrace.protocol.schemas.records.metadata import RemoveTopicRecord, TopicRecord
from tests.builders.metadata_images import topic_id
from tests.builders.metadata_quorums import Cluster, Member, setting, writing
from tests.builders.seeds import seeds
from tests.builders.virtual_time import in_virtual_time

SMALL = MetadataLogSettings(
    record_bytes_between_snapshots=3000, retention_bytes=0, segment_bytes=20_000
)
_CLIENT_TIMEOUT_S = 20.0
_CALM_S = 20.0


class Storm:
    """A cluster, its clients, and its faults."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.cluster = Cluster(directory, settings=SMALL, background=self._slow)
        self.acknowledged: set[str] = set()
        self.images: dict[int, MetadataImage] = {}
        self._clients: set[asyncio.Task[None]] = set()
        self._written = 0

    async def _slow(self, function: Callable[[], None]) -> None:
        await asyncio.sleep(self.chance.expovariate(200))
        function()

    async def run(self, rounds: int) -> None:
        async with self.cluster as cluster:
            cluster.launch(4)
            for _ in range(rounds):
                await asyncio.sleep(self.chance.expovariate(2))
                await self.step()
                self.check()
            cluster.cut_off.clear()
            cluster.loss = 0.0
            for node_id in (1, 2, 3, 4):
                if not cluster.members[node_id].is_up:
                    cluster.launch(node_id)
            await asyncio.gather(*self._clients)
            await asyncio.sleep(_CALM_S)
            leader = await cluster.active()
            await leader.controller.submit(setting("last"))
            await cluster.level()
            self.check()
            for member in cluster.members.values():
                assert member.failures == []
                assert self.acknowledged <= set(member.image.configs_of(4, ""))
                assert member.image == leader.image

    async def step(self) -> None:
        cluster, chance = self.cluster, self.chance
        member = cluster.members[chance.choice((1, 2, 3, 4))]
        match chance.randrange(9):
            case 0 if member.is_up:
                await member.kill()
            case 1 if member.is_up:
                await member.stop()
            case 2 if member.is_up:
                cluster.cut_off = {member.id}
            case 3:
                cluster.cut_off.clear()
                cluster.loss = chance.choice((0.0, 0.0, 0.05, 0.2))
            case 4 if member.is_up:
                await member.controller.maintain()
            case 5 | 6:
                for down in cluster.members.values():
                    if not down.is_up:
                        cluster.launch(down.id)
                        break
            case _:
                for _ in range(chance.randint(1, 10)):
                    self._write(cluster.members[chance.choice((1, 2, 3))])

    def _write(self, member: Member) -> None:
        """Have a client send a change to a controller, which may lead or not."""
        self._written += 1
        name = f"{self._written:05d}"
        client = asyncio.ensure_future(self._change(member, name))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _change(self, member: Member, name: str) -> None:
        try:
            async with asyncio.timeout(_CLIENT_TIMEOUT_S):  # The process may be killed.
                await member.controller.submit(setting(name, "x" * self.chance.randint(1, 200)))
                if self._written % 3 == 0:
                    id_ = topic_id(name)
                    await member.controller.submit(writing(TopicRecord(name, id_)))
                    await member.controller.submit(writing(RemoveTopicRecord(id_)))
        except (KafkaError, TimeoutError):
            return
        self.acknowledged.add(name)

    def check(self) -> None:
        """Images of one offset agree, and each difference begins with the image before."""
        for member in self.cluster.members.values():
            base = member.checked
            for delta, image in member.published:
                assert delta.base is base, "a difference begins with the last published image"
                assert image.offset >= base.offset, "images do not go back"
                known = self.images.setdefault(image.offset, image)
                assert known == image, f"two images of offset {image.offset}"
                base = image
            member.checked = base
            member.published.clear()


@pytest.mark.parametrize("seed", seeds(10))
def test_acknowledged_changes_survive_and_images_agree(tmp_path: Path, seed: int) -> None:
    in_virtual_time(Storm(tmp_path, seed).run(150))
