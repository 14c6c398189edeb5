"""Python's garbage collector in a process that answers requests for as long as it runs."""

import gc

_YOUNG_MAX = 10_000
"""The number of young objects that triggers the collector. Python's 700 triggers it several times
per request for almost no garbage, because requests release their objects."""


def freeze_collector() -> None:
    """Exclude all current objects from collections; call it once the process is ready."""
    gc.collect()
    gc.freeze()
    _, *older = gc.get_threshold()
    gc.set_threshold(_YOUNG_MAX, *older)
