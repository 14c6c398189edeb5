"""A wall around the process's memory, for what DuckDB's own limit does not count.

DuckDB bounds its buffers, but not every vector of a query: `SELECT range(500000000)` is computed
while the query is planned, takes many gigabytes and cannot be interrupted. With a limit of the
kernel's such an allocation fails, the query gets an error, and the server goes on.
"""

import os
import resource

_RETURN_MEMORY = "retain:false,dirty_decay_ms:1000,muzzy_decay_ms:0"
_BESIDE_BYTES = 512 << 20
"""Answers under way, the files that are read, and the stacks of threads."""
_STOPPING_BYTES = 256 << 20
"""The stacks of some thirty threads, 8 MB each as Linux counts them."""


def let_memory_return() -> None:
    """Have DuckDB's allocator give freed memory back; before DuckDB is imported.

    It would keep address space for later, and the wall counts that: after one greedy
    query all later ones would fail. Arrow's would take a gigabyte of it at the start.
    """
    os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", _RETURN_MEMORY)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def raise_wall(memory_bytes: int) -> int | None:
    """Let this process's data grow by what DuckDB may have twice over, and something beside.

    Returns the bound; None where the kernel does not tell how much there is now. A lower bound
    that somebody else has set stays.
    """
    now = _data_bytes()
    if now is None:
        return None
    bound = now + 2 * memory_bytes + _BESIDE_BYTES
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    lowest = min(one for one in (soft, hard, bound) if one != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (lowest, hard))
    return lowest


def leave_room_to_stop() -> None:
    """Move the wall back a little: what stops the server needs threads, and their stacks count.

    A query that cannot be interrupted may have taken all that there was before the wall.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY:
        return
    wanted = soft + _STOPPING_BYTES
    resource.setrlimit(
        resource.RLIMIT_DATA,
        (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard),
    )


def _data_bytes() -> int | None:
    """What the kernel counts against the limit."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmData:"))
    except (OSError, StopIteration):
        return None
    return int(line.split()[1]) * 1024
