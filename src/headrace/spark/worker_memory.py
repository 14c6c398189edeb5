"""Keeps what a worker has loaded for good away from the garbage collector.

Spark's workers collect all garbage after every task before they take another one. With Arrow,
Spark's own modules and numba loaded that looks through 140,000 objects for 75 ms, none of which
ever goes: longer than it takes to read 100,000 records, and many times what a micro-batch needs.

Only in forks of our daemon: elsewhere the process is not ours, and one that ends in the ordinary
way complains about what is frozen.
"""

import gc
import os
import sys

_modules_frozen: int | None = None
"""How many modules were loaded when the collector was last told; None if this is no worker."""


def spare_workers() -> None:
    """From now on forks of this process are workers: what they inherit is theirs for good."""
    os.register_at_fork(after_in_child=_freeze)


def task_done() -> None:
    """Spare what a task has loaded, as numba is when much is read; heard in workers only."""
    if _modules_frozen is not None and len(sys.modules) != _modules_frozen:
        gc.collect()  # What is frozen stays, so garbage must not be.
        _freeze()


def _freeze() -> None:
    global _modules_frozen
    _modules_frozen = len(sys.modules)
    gc.freeze()
