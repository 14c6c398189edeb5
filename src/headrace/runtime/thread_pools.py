"""The door to pools of threads for work on disks, which a simulation replaces.

Callers use the module (`thread_pools.new(...)`), as with `files`. Work that an event loop waits for
belongs to `tasks.Tasks`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def new(count: int, name: str) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # Slow to import, and seldom needed.

    return ThreadPoolExecutor(count, thread_name_prefix=name)
