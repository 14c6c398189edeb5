"""Fingerprints of views; a changed fingerprint means that the view must be recomputed.

A fingerprint covers the query, the temporary views behind it and the expectations. For a function
it covers the code, also of functions that it calls, and the values of the names in it: a constant
of a module is part of the query.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from headrace.pipelines.analysing.called_functions import called, named_values
from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.model import MaterializedView, MergedView, Pipeline, Query, TemporaryView

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def fingerprint(
    view: MaterializedView | MergedView,
    pipeline: Pipeline,
    reads: Mapping[str, Sequence[Read]],
    plan: str = "",
) -> str:
    """Return the fingerprint of a view; `reads` has the inputs of each query.

    `plan` is Spark's, if available: it shows values that a function takes from its environment.
    """
    parts: list[Any] = [_query(view.query), plan]
    parts += [(name, _query(query)) for name, query in _views_behind(view.name, pipeline, reads)]
    match view:
        case MaterializedView():
            parts.append(view.expectations)
        case MergedView():
            parts += [sorted(view.merge.items()), view.deduplicate_by]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _views_behind(
    name: str, pipeline: Pipeline, reads: Mapping[str, Sequence[Read]]
) -> Iterator[tuple[str, Query]]:
    """Yield the temporary views behind a query."""
    seen, names = {name}, [name]
    while names:
        for read in reads.get(names.pop(), ()):
            dataset = pipeline.datasets.get(read.name)
            if isinstance(dataset, TemporaryView) and read.name not in seen:
                seen.add(read.name)
                names.append(read.name)
                yield read.name, dataset.query


def _query(query: Query) -> Any:
    if isinstance(query, str):
        return query
    return [_function(function) for function in called(query)]


def _function(function: FunctionType) -> tuple[Any, ...]:
    values = [(name, _value(value)) for name, value in named_values(function)]
    given = (_value(function.__defaults__), _value(function.__kwdefaults__))
    return (_code(function.__code__), given, values)


def _code(code: CodeType) -> tuple[Any, ...]:
    """Return a function's code without memory addresses of nested functions."""
    constants = [_code(one) if isinstance(one, CodeType) else _value(one) for one in code.co_consts]
    return (code.co_code, code.co_names, code.co_varnames, constants)


def _value(value: Any) -> str:
    """Return a value as text that is the same in another process; functions are covered apart."""
    match value:
        case FunctionType() | ModuleType() | type():
            return f"{type(value).__name__} {value.__name__}"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(_value, value)))}}}"
        case dict():
            return f"{{{', '.join(f'{_value(k)}: {_value(v)}' for k, v in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return _ADDRESS.sub("", repr(value))
