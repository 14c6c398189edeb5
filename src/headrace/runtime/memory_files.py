"""Files in memory, for libraries that read a secret only from a path."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def memory_file(content: bytes) -> Iterator[str]:
    """Return the path of a file that no other user can read, and that is gone afterwards.

    On Linux the content never reaches a disk.
    """
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("headrace", os.MFD_CLOEXEC)
        try:
            os.write(fd, content)
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
        return
    with tempfile.NamedTemporaryFile(prefix="headrace-") as file:  # Created with mode 0600.
        file.write(content)
        file.flush()
        yield file.name
