"""By what a view is computed, as a short text: another text means that it is to be computed anew.

That is its query with the temporary views behind it and its expectations. Of functions the code
counts, that of those they call too, and the values of what they name: constants of a module are
part of a query as much as what is written in it.
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
    """Tells one way of computing a view from another; `reads` has what each query reads.

    `plan` is Spark's, where one can be had: it shows what a function has made of its environment.
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
    """The temporary views that a query reads, and those that they read."""
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
    """The code of a function without the places in memory of functions within it."""
    constants = [_code(one) if isinstance(one, CodeType) else _value(one) for one in code.co_consts]
    return (code.co_code, code.co_names, code.co_varnames, constants)


def _value(value: Any) -> str:
    """A value as text that is the same in the next process; functions are looked at elsewhere."""
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
