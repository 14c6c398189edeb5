"""Maintenance: checkpoints that several callers ask for at once."""

import asyncio
from pathlib import Path

from headrace.protocol.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.storage import checkpoints
from tests.unit.broker.test_node import node


async def test_checkpoints_asked_for_at_once_are_written_one_by_one(tmp_path: Path) -> None:
    """They share the name of a temporary file; a failed rename would take the disk offline."""
    one = node(tmp_path)
    await one.start()
    for number in range(5):
        topic = CreatableTopic(f"orders-{number}", 1, 1)
        await one.metadata.ask(CreateTopicsRequest(topics=[topic]))
        for directory in one.directories.online:
            directory.written.clear()
        await asyncio.gather(*(one.maintenance.checkpoint() for _ in range(8)))
    assert [directory.failure for directory in one.directories.online] == [None]
    points = checkpoints.read_offsets(f"{tmp_path}/{checkpoints.RECOVERY_POINTS}")
    assert len(points) == 5
    await one.stop()
