"""Objects that bring headrace along to Pythons of a Spark Connect server, which may not have it.

What a client adds to its session reaches batch queries there, and the jobs that a function of
`foreachBatch` starts; not that function itself, nor the sources and tasks of streams. So what these
are given has the zip within its own pickled bytes, once for each pickle, and runs `arriving.bring`
before the rest is unpickled.

Only in a process that was told to `carry`: a client of such a server, and whoever got headrace in
this way. Elsewhere everything is pickled as ever.
"""

import copyreg
from typing import Any, SupportsIndex, TypeVar

from headrace.spark import arriving

T = TypeVar("T")


def carry(name: str, archive: bytes) -> None:
    """From now on let what leaves this process bring the zip along; its name tells its content."""
    from pyspark import cloudpickle

    global _luggage
    if name != carried_name():
        cloudpickle.register_pickle_by_value(arriving)  # type: ignore[no-untyped-call]
        _luggage = _Luggage(name, archive)


def carried_name() -> str | None:
    """The name of the zip that is brought along, if one is."""
    return None if _luggage is None else _luggage.name


class Carrier:
    """For classes whose objects Spark pickles by itself, a base that lets them carry."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        reduced: Any = super().__reduce_ex__(protocol)
        if _luggage is None:
            return reduced
        assert reduced[0] is copyreg.__newobj__, "none of them tells pickle how to make it"  # type: ignore[attr-defined]
        _, arguments, *state = reduced
        return arriving.made, (_luggage, *arguments), *state


def carried(thing: T) -> T:
    """What becomes the thing where it is unpickled: for functions, and for classes themselves."""
    return thing if _luggage is None else _Carried(thing)  # type: ignore[return-value]


class _Carried:
    """Stands for a thing until it is pickled; Spark only looks at its names and hints before."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __reduce__(self) -> tuple[Any, ...]:
        return arriving.given, (_luggage, self._thing)

    def __call__(self, *arguments: Any) -> Any:
        return self._thing(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class _Luggage:
    """The zip. Its pickle is the call that unpacks it; one object, so it is in a pickle once."""

    def __init__(self, name: str, archive: bytes) -> None:
        self.name = name
        self._archive = archive

    def __reduce__(self) -> tuple[Any, ...]:
        return arriving.bring, (self.name, self._archive)


_luggage: _Luggage | None = None
