"""Whether `make run` is bringing libraries into this environment just now.

It takes minutes, the node is up meanwhile, and whoever types a command that needs the libraries
wants to hear that they are on their way. The sign is a lock, not a file: it goes with its holder,
so an installation that was cut off leaves none behind.
"""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FILE = "installing"


@contextmanager
def under_way() -> Iterator[int]:
    """Let others know, until the block is left; a child that is given the descriptor holds it too.

    The lock is shared: two may install one after the other, and either is reason to wait.
    """
    descriptor = os.open(os.path.join(sys.prefix, _FILE), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def is_under_way() -> bool:
    try:
        descriptor = os.open(os.path.join(sys.prefix, _FILE), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
