"""Objects whose pickle contains headrace, for the Pythons of a Spark Connect server.

Files that a client adds to its session reach batch queries on the server, and the jobs that a
`foreachBatch` function starts. They do not reach that function itself, nor the sources and tasks of
streams. So these objects have the zip of headrace in their own pickle, once for each pickle, and
call `package_loader.load_package` before the rest is unpickled.

Only a process that called `attach_package` does this: a client of such a server, and each process
that loaded headrace in this way. Everywhere else objects are pickled as usual.
"""

import copyreg
from typing import Any, SupportsIndex, TypeVar

from headrace.spark.launching import package_loader

T = TypeVar("T")


def attach_package(name: str, archive: bytes) -> None:
    """Add the zip to everything that this process pickles; its name identifies its content."""
    from pyspark import cloudpickle

    global _package
    if name != attached_name():
        cloudpickle.register_pickle_by_value(package_loader)  # type: ignore[no-untyped-call]
        _package = _Package(name, archive)


def attached_name() -> str | None:
    """Return the name of the zip that is added to pickles, if any."""
    return None if _package is None else _package.name


class PickledWithPackage:
    """Base class for objects that Spark itself pickles; their pickles contain the zip."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        reduced: Any = super().__reduce_ex__(protocol)
        if _package is None:
            return reduced
        assert reduced[0] is copyreg.__newobj__, "a subclass defines its own reduction"  # type: ignore[attr-defined]
        _, arguments, *state = reduced
        return package_loader.new_object, (_package, *arguments), *state


def with_package(thing: T) -> T:
    """Return a stand-in that unpickles as the thing: for functions, and for classes themselves."""
    return thing if _package is None else _WithPackage(thing)  # type: ignore[return-value]


class _WithPackage:
    """A stand-in for a thing until it is pickled; Spark reads only its name and type hints."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __reduce__(self) -> tuple[Any, ...]:
        return package_loader.same_object, (_package, self._thing)

    def __call__(self, *arguments: Any) -> Any:
        return self._thing(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class _Package:
    """The zip. It pickles as the call that loads it; as one object it is in each pickle once."""

    def __init__(self, name: str, archive: bytes) -> None:
        self.name = name
        self._archive = archive

    def __reduce__(self) -> tuple[Any, ...]:
        return package_loader.load_package, (self.name, self._archive)


_package: _Package | None = None
