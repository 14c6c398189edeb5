"""Compiled functions that work on memory by its address, as scanners of payloads do.

Compiled functions that pass arrays to each other count references to them at every call, and look
whether an index is negative at every access; with functions as small as those of a scanner that is
most of the time. An address is a number. Who takes one keeps the array alive and stays inside.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from headrace.spark.source.compiled_cache import prepare_cache

IS_KEPT = prepare_cache(__file__)

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compiled when first called, and kept on disk for the next process where a disk may be used.

    What is kept is known by the age of the function's own file only: who changes a function that
    others call must touch their files too, or remove `__pycache__`.
    """
    made: Callable[P, R] = njit(cache=IS_KEPT, nogil=True)(function)
    return made


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small part of compiled functions: becomes a piece of each one that calls it."""
    made: Callable[P, R] = njit(nogil=True, forceinline=True)(function)
    return made


def load_byte(typing_context: Any, address: Any, position: Any) -> Any:
    """How the byte at a position behind an address is read, told to the compiler."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base, offset = arguments
        pointer = builder.inttoptr(base, ir.IntType(8).as_pointer())
        return builder.zext(builder.load(builder.gep(pointer, [offset])), ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


def count_plain(typing_context: Any, address: Any, position: Any) -> Any:
    """How eight bytes are looked at as one number, told to the compiler.

    Taking one from each byte borrows from its high bit only if it was zero, and so finds quotes
    and backslashes once they are made zeros; taking 32 finds control characters. What a borrow
    spoils lies behind the first find.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def repeated(byte: int) -> Any:
            return ir.Constant(ir.IntType(64), byte * 0x0101_0101_0101_0101)

        def below(word: Any, limit: int) -> Any:
            return builder.and_(builder.sub(word, repeated(limit)), builder.not_(word))

        base, offset = arguments
        pointer = builder.gep(builder.inttoptr(base, ir.IntType(8).as_pointer()), [offset])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        found = below(word, 32)
        for sign in b'"\\':
            found = builder.or_(found, below(builder.xor(word, repeated(sign)), 1))
        found = builder.and_(found, repeated(0x80))
        zeros = builder.cttz(found, ir.Constant(ir.IntType(1), 0))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.int64, types.int64), generate


byte_at: Callable[[int, int], int] = cast(Any, intrinsic(load_byte))
"""The byte at a position behind an address, from 0 to 255."""

plain_run: Callable[[int, int], int] = cast(Any, intrinsic(count_plain))
"""How many of the eight bytes at a position stand for themselves within a JSON string."""
