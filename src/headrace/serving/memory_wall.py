"""A wall around the process's memory, for what DuckDB's own limit does not count.

DuckDB bounds its buffers, but not every vector of a query: `SELECT range(500000000)` is computed
while the query is planned, takes many gigabytes and cannot be interrupted. With a limit of the
kernel's such an allocation fails, the query gets an error, and the server goes on.
"""

import os
import resource

_RETURN_MEMORY = "retain:false,dirty_decay_ms:1000,muzzy_decay_ms:0"
_BESIDE_BYTES = 1 << 30
"""Python, Arrow, answers under way, and the stacks of threads."""


def let_memory_return() -> None:
    """Have DuckDB's allocator give freed memory back; before DuckDB is imported.

    It would keep address space for later, and the wall counts that: after one greedy
    query all later ones would fail.
    """
    os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", _RETURN_MEMORY)


def raise_wall(memory_bytes: int) -> int:
    """Bound this process's data to what DuckDB may have twice over, and something beside.

    Returns the bound. One that is there already and lower stays.
    """
    bound = 2 * memory_bytes + _BESIDE_BYTES
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [one for one in (soft, hard, bound) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    return min(limits)
