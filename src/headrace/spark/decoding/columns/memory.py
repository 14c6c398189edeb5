"""Compiled functions that access memory by its address, for the scanners of payloads.

Compiled functions that pass arrays count references at every call and check for negative indexes at
every access, which is most of the time of small functions. An address is a plain number, so callers
keep the array alive, and functions stay within its bounds.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from headrace.spark.compiled_cache import prepare_cache

IS_KEPT = prepare_cache(__file__)

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function at its first call, and cache the code on disk where that is possible.

    The cache depends on the age of the function's own file only: after a change to a function,
    touch the files of its callers too, or remove `__pycache__`.
    """
    made: Callable[P, R] = njit(cache=IS_KEPT, nogil=True)(function)
    return made


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small function into each of its compiled callers."""
    made: Callable[P, R] = njit(nogil=True, forceinline=True)(function)
    return made


def load_byte(typing_context: Any, address: Any, position: Any) -> Any:
    """Define for the compiler how to read the byte at a position after an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base, offset = arguments
        pointer = builder.inttoptr(base, ir.IntType(8).as_pointer())
        return builder.zext(builder.load(builder.gep(pointer, [offset])), ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


def count_plain(typing_context: Any, address: Any, position: Any) -> Any:
    """Define for the compiler how to count plain characters in eight bytes at once.

    Subtracting 1 from a byte borrows into its high bit only if it was 0, which finds quotes and
    backslashes after they are mapped to 0; subtracting 32 finds control characters. A borrow only
    affects bytes after the first match.
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
"""Return the byte at a position after an address."""

plain_run: Callable[[int, int], int] = cast(Any, intrinsic(count_plain))
"""Count the bytes, of eight at a position, before the first special one in a JSON string."""
