"""Buffers that contain frames while they are read and served.

Small frames share one scratch buffer of all connections. A large frame, which takes several reads,
gets a buffer of its own; a few of these are kept, because faulting in their pages is expensive.
"""

from mmap import mmap

LARGE_FRAME_BYTES = 32 * 1024
_SCRATCH_BYTES = 256 * 1024

FrameBuffer = bytearray | mmap
Frames = bytearray | memoryview
"""A buffer of whole frames: a bytearray, which is stable until the round of sockets ends, or a view
of a pooled buffer, which the next frame overwrites."""


class FrameBuffers:
    """The scratch buffer, and a few large buffers that are reused.

    The next bytes of any client are read into `vacant`, the scratch buffer from `start` on.
    """

    def __init__(self, request_bytes_max: int, *, kept_max: int = 8, kept_bytes: int = 2 << 20):
        self.request_bytes_max = request_bytes_max
        self.scratch = bytearray(_SCRATCH_BYTES)
        self.view = memoryview(self.scratch)
        self.vacant = self.view
        self.start = 0
        self._kept: list[mmap] = []
        self._kept_max = kept_max
        self._kept_bytes = kept_bytes

    def keep(self, end: int) -> None:
        """Do not overwrite the scratch buffer before a position until `vacate`."""
        self.start = end
        self.vacant = self.view[end:]

    def vacate(self) -> None:
        self.start = 0
        self.vacant = self.view

    def take(self, size: int) -> FrameBuffer:
        """Return a buffer. Pages of a mapping exist only once written, so a mere size is free."""
        if size <= LARGE_FRAME_BYTES * 2:
            return bytearray(size)
        if size > self._kept_bytes:
            return mmap(-1, size)
        return self._kept.pop() if self._kept else mmap(-1, self._kept_bytes)

    def give_back(self, buffer: FrameBuffer) -> None:
        if (
            isinstance(buffer, mmap)
            and len(buffer) == self._kept_bytes
            and len(self._kept) < self._kept_max
        ):
            self._kept.append(buffer)
