"""The metadata of the cluster as this broker sees it, and the way to change it.

In a cluster the quorum runs on an event loop of its own. Only messages and frozen values cross
between the loops: requests and responses, images and their differences.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import KafkaStorageError
from headrace.metadata.image import EMPTY, MetadataImage
from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.metadata.delta import ImageDelta
    from headrace.quorum.figures import QuorumFigures
    from headrace.quorum.quorum_node import QuorumNode
    from headrace.runtime.loop_thread import LoopThread
    from headrace.security.principals import Caller

_log = logging.getLogger(__name__)

T = TypeVar("T")

Listener = Callable[["ImageDelta", MetadataImage], None]


class ClusterMetadata:
    """Images of the metadata on the broker's loop, and requests to the active controller."""

    def __init__(
        self,
        quorum_node: "QuorumNode",
        loop: asyncio.AbstractEventLoop,
        thread: "LoopThread | None" = None,
    ) -> None:
        """`thread` runs the loop of the quorum; without it, the quorum shares the broker's loop."""
        self.image = EMPTY
        """The last image that the broker has applied."""
        self._node = quorum_node
        self._thread = thread
        self._listeners: list[Listener] = []
        self._changed = asyncio.Event()
        self._held: list[tuple[ImageDelta, MetadataImage]] | None = None
        publish = self._publish
        if thread is not None:
            quorum_node.controller.on_published(
                lambda delta, image: loop.call_soon_threadsafe(publish, delta, image)
            )
        else:
            quorum_node.controller.on_published(publish)

    @property
    def failure(self) -> KafkaStorageError | None:
        """The failure of the metadata log, after which the node must stop."""
        return self._node.quorum.failure

    @property
    def kraft_version(self) -> int:
        return self._node.quorum.kraft_version

    def figures(self) -> "QuorumFigures":
        """Return figures of the quorum; they are read, not changed, from another thread."""
        return self._node.figures()

    def on_published(self, listener: Listener) -> None:
        """Call back with each new image, and its difference from the one before."""
        self._listeners.append(listener)

    async def ask(
        self, request: Message, version: int | None = None, caller: "Caller | None" = None
    ) -> Any:
        """Return the active controller's response; raise its error if the whole request fails.

        `caller` is the client that sent the request; None if the node asks for itself.
        """
        return await self.run(self._node.ask(request, version, caller))

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the quorum on its loop."""
        return await (work if self._thread is None else self._thread.run(work))

    async def wait_for(self, is_there: Callable[[MetadataImage], bool]) -> MetadataImage:
        """Wait for an image with something in it."""
        while not is_there(self.image):
            self._changed.clear()
            await self._changed.wait()
        return self.image

    def hold(self) -> None:
        """Keep the present image, and collect newer ones until `release`."""
        self._held = []

    def release(self) -> None:
        """Publish the images that were held back."""
        held, self._held = self._held or [], None
        for delta, image in held:
            self._publish(delta, image)

    def _publish(self, delta: "ImageDelta", image: MetadataImage) -> None:
        if self._held is not None:
            self._held.append((delta, image))
            return
        self.image = image
        for listener in self._listeners:
            try:
                listener(delta, image)
            except Exception:
                # A failing listener must not keep the image from the others.
                _log.exception("metadata listener failed", extra={"offset": image.offset})
        self._node.lifecycle.applied_offset = image.offset
        self._changed.set()
