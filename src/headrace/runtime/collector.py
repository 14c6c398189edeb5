"""Python's garbage collector in a process that answers requests for as long as it runs."""

import gc

_YOUNG_MAX = 10_000
"""How many young objects there are before the collector looks at them. With Python's 700 it came
several times a request and found next to nothing: what a request makes, it also lets go."""


def leave_alone_what_lives() -> None:
    """Call it once the process is ready: what lives then lives long, and is not looked at again."""
    gc.collect()
    gc.freeze()
    _, *older = gc.get_threshold()
    gc.set_threshold(_YOUNG_MAX, *older)
