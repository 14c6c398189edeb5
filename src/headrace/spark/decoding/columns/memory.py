"""Compiled functions that work on memory by its address, as scanners of payloads do.

Compiled functions that pass arrays to each other count references to them at every call, and look
whether an index is negative at every access; with functions as small as those of a scanner that is
most of the time. An address is a number. Who takes one keeps the array alive and stays inside.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiled when first called, and kept on disk for the next process where a disk may be used.

    What is kept is known by the age of the function's own file only: who changes a function that
    others call must touch their files too, or remove `__pycache__`.
    """
    try:
        made: Callable[P, R] = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        made = njit(nogil=True)(function)  # Neither beside the module nor at home may be written.
    return made


def load_byte(typing_context: Any, address: Any, position: Any) -> Any:
    """How the byte at a position behind an address is read, told to the compiler."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base, offset = arguments
        pointer = builder.inttoptr(base, ir.IntType(8).as_pointer())
        return builder.zext(builder.load(builder.gep(pointer, [offset])), ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


byte_at: Callable[[int, int], int] = cast(Any, intrinsic(load_byte))
"""The byte at a position behind an address, from 0 to 255."""
