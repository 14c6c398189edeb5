"""Starting a node: the order of its steps."""

import asyncio
import socket
from pathlib import Path

import pytest

from headrace.broker.node import Node
from headrace.errors import CannotListen
from headrace.settings.broker_loading import load
from headrace.storage.checkpoints import CLEAN_SHUTDOWN

HOST = "127.0.0.1"


def node(data: Path, **properties: str) -> Node:
    given = {
        "log.dirs": str(data),
        "listeners": f"PLAINTEXT://{HOST}:0",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    return Node(load(given)[0], asyncio.get_running_loop())


@pytest.mark.parametrize(
    "taken",
    [
        {"listeners": "PLAINTEXT://127.0.0.1:{port}"},
        {"headrace_metrics_port": "{port}"},
    ],
    ids=["listeners", "metrics"],
)
async def test_a_start_on_a_taken_port_leaves_the_marker_of_a_clean_stop(
    tmp_path: Path, taken: dict[str, str]
) -> None:
    """LOG-11: without the marker the next start checks every log."""
    first = node(tmp_path)
    await first.start()
    await first.stop()
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        second = node(tmp_path, **{name: text.format(port=port) for name, text in taken.items()})
        with pytest.raises(CannotListen):
            await second.start()
        second.server.stop()
        await second.tasks.stop()
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
