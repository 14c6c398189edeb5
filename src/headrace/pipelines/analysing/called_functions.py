"""The functions behind a Python query: its own, and those that it calls."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_INSTALLED = (sysconfig.get_path("stdlib"), str(Path(__file__).parents[2]))
"""The folders of Python's own files and of headrace; both change by releases only."""


def called(function: Any) -> Iterator[FunctionType]:
    """Yield a function, and those in its globals and closure outside of installed packages."""
    yield from _called(function, set())


def named_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the values of names in a function's code: globals, closure, attributes of modules."""
    names = list(dict.fromkeys(names_of(function.__code__)))
    for name in names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType) and not is_installed(getattr(value, "__file__", None)):
            yield from ((one, vars(value)[one]) for one in names if one in vars(value))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # Not assigned yet.


def names_of(code: CodeType) -> Iterator[str]:
    """Yield the names in a function's code, and in nested functions."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from names_of(one)


def is_installed(file: str | None) -> bool:
    """Return whether a file belongs to Python, headrace or an installed package."""
    return file is None or "-packages" in file or file.startswith(_INSTALLED)


def _called(function: Any, seen: set[Any]) -> Iterator[FunctionType]:
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    if is_installed(function.__code__.co_filename):
        return
    yield function
    for _, one in named_values(function):
        yield from _called(one, seen)
