"""The process of a node: it runs until a signal or a failed disk stops it."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from headrace.broker.node import Node
from headrace.runtime.loop_thread import new_loop
from headrace.settings.broker import BrokerSettings

if TYPE_CHECKING:
    from headrace.broker.controller_node import ControllerNode

_log = logging.getLogger(__name__)

RunningNode: TypeAlias = "Node | ControllerNode"


async def _nothing() -> None:
    """The default of `before_stop`."""


def run(
    settings: BrokerSettings,
    on_ready: Callable[[RunningNode], None],
    before_stop: Callable[[], Awaitable[None]] = _nothing,
) -> int:
    """Run a node until a signal stops it; return the exit code of its process.

    `before_stop` ends the programs that need the node.
    """
    loop = new_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(settings, loop, on_ready, before_stop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(
    settings: BrokerSettings,
    loop: asyncio.AbstractEventLoop,
    on_ready: Callable[[RunningNode], None],
    before_stop: Callable[[], Awaitable[None]],
) -> int:
    node = _new_node(settings, loop)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, node.stopping.set)
    if not await _started(node):
        _log.info("stopped before the node was ready")
        return 0
    # Objects made during the start live as long as the node: exclude them from collection.
    gc.collect()
    gc.freeze()
    # Python's default of 5 ms would let a compacting thread delay the answers to clients.
    sys.setswitchinterval(0.0005)
    on_ready(node)
    await node.stopping.wait()
    _log.info("stopping")
    await before_stop()
    await node.stop()
    _log.info("stopped")
    return 0 if node.failure is None else 1


def _new_node(settings: BrokerSettings, loop: asyncio.AbstractEventLoop) -> "RunningNode":
    if settings.is_broker:
        return Node(settings, loop)
    from headrace.broker.controller_node import ControllerNode

    return ControllerNode(settings, loop)


async def _started(node: RunningNode) -> bool:
    """Start the node; false if a signal came first. A cluster without a majority never starts."""
    starting = asyncio.ensure_future(node.start())
    stopping = asyncio.ensure_future(node.stopping.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        await node.abandon()
        return False
    await starting
    return True
