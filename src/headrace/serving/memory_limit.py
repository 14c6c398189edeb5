"""A kernel limit on the process's memory, beyond DuckDB's own limit.

DuckDB bounds its buffers, but not every vector of a query: `SELECT range(500000000)` is computed
during planning, takes many gigabytes and cannot be interrupted. Under a limit of the kernel such an
allocation fails: the query gets an error, and the server continues.
"""

import os
import resource

_RETURN_MEMORY = "retain:false,dirty_decay_ms:1000,muzzy_decay_ms:0"
_BESIDE_BYTES = 512 << 20
"""Memory for answers, files being read, and stacks of threads."""
_STOPPING_BYTES = 256 << 20
"""The stacks of about thirty threads, 8 MB each by Linux's count."""


def configure_allocators() -> None:
    """Make DuckDB's allocator return freed memory; call it before DuckDB is imported.

    By default it keeps address space, which counts against the limit: after one large query all
    later ones would fail. Arrow's default allocator would reserve a gigabyte at the start.
    """
    os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", _RETURN_MEMORY)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def limit_memory(memory_bytes: int) -> int | None:
    """Limit this process's data to its present size, twice DuckDB's limit and a reserve.

    Returns the limit; None if the kernel does not report the present size. A lower limit that is
    already set stays.
    """
    now = _data_bytes()
    if now is None:
        return None
    bound = now + 2 * memory_bytes + _BESIDE_BYTES
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    lowest = min(one for one in (soft, hard, bound) if one != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (lowest, hard))
    return lowest


def extend_limit_to_stop() -> None:
    """Raise the limit a little: stopping the server needs threads, whose stacks count.

    A query that cannot be interrupted may have exhausted the limit.
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
    """Return the memory that the kernel counts against the limit."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmData:"))
    except (OSError, StopIteration):
        return None
    return int(line.split()[1]) * 1024
