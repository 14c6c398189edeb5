"""Checks that an aggregate can be computed batch by batch and merged to that of all rows.

This holds if one aggregate is on top, each merged column is a sum, count, minimum or maximum, the
view's columns identify all groups, and everything below the aggregate works row by row. Other
queries are rejected: their numbers would be wrong without notice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.pipelines.analysing.plans import Node, Plan

_WAYS = {
    "Sum": "sum",
    "Count": "sum",
    "CountIf": "sum",
    "RegrCount": "sum",
    "Min": "min",
    "BoolAnd": "min",
    "Max": "max",
    "BoolOr": "max",
}
"""The merge of each aggregate function's parts."""
_NAMES = {"Average": "avg"}
_TRANSPARENT = frozenset(
    (
        *("SubqueryAlias", "View", "Sort", "CTERelationDef", "EventTimeWatermark"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
        *("ResolvedHint", "UnresolvedHint"),
    )
)
"""Operators that change no row."""
_BY_ROW = _TRANSPARENT | {
    *("Project", "Filter", "Generate", "Expand", "Union", "WithCTE", "CTERelationRef"),
    *("MapInPandas", "PythonMapInArrow", "MapInArrow"),
    *("StreamingRelation", "StreamingRelationV2", "LogicalRDD", "LocalRelation", "Range"),
    *("LogicalRelation", "DataSourceV2Relation", "StreamingDataSourceV2Relation", "OneRowRelation"),
}
"""Operators that work row by row, so that the batch of a row does not matter."""
_DUPLICATES = "it finds duplicates within a batch only; write DEDUPLICATE BY (columns), or"
_WHY = {
    "Aggregate": "it aggregates an aggregate, and a batch has only its own rows",
    "Deduplicate": _DUPLICATES,
    "DeduplicateWithinWatermark": _DUPLICATES,
    "Distinct": _DUPLICATES,
    "GlobalLimit": "LIMIT applies to each batch",
    "LocalLimit": "LIMIT applies to each batch",
    "Offset": "OFFSET applies to each batch",
    "Join": "it joins rows with those of the same batch only",
    "Sample": "it takes a sample",
    "Window": "a window function sees the rows of one batch only",
}
_SUBQUERIES = frozenset(("Exists", "LateralSubquery", "ListQuery", "ScalarSubquery"))
_ELSEWHERE = "make it a materialized view, which is computed whole"
_INTEGRAL = re.compile(r"byte|short|integer|long")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class NotMergeable(Exception):
    """The reason why a query cannot be merged, with advice."""


def complaints(plan: Plan, merge: Mapping[str, str]) -> list[str]:
    """Return all problems of a merged query; `merge` has the way of merging by column."""
    try:
        shape = _shape(plan.root, {})
    except NotMergeable as error:
        return [str(error)]
    found = list(_wrong_columns(shape, merge))
    found += _hidden_groups(shape, merge)
    if not plan.is_repeatable:
        found.append(
            "it uses the time or random numbers (current_timestamp, rand), so a repeated batch"
            " would differ; move that into the table that it reads"
        )
    return found


@dataclass(frozen=True, slots=True)
class _Shape:
    """An aggregate with the projections above it."""

    groups: Sequence[Node]
    columns: Sequence[tuple[str, int]]
    """Names and ids, in the order of the table."""
    meanings: Mapping[int, Node]
    """The expression of each id, in terms of the aggregate and its input."""

    def meant(self, expression: Node) -> Node:
        """Return an expression with columns replaced by their expressions."""
        if expression.kind == "AttributeReference":
            return self.meanings.get(expression.id, expression)
        return replace(
            expression, children=tuple(self.meant(child) for child in expression.children)
        )


def _shape(node: Node, named: Mapping[int, Node]) -> _Shape:
    """Return the shape below a node; `named` has the queries of a WITH clause."""
    match node.kind:
        case "WithCTE":
            queries = [node.children[at] for at in node.fields["cteDefs"]]
            known = {**named, **{int(one.fields["id"]): one for one in queries}}
            return _shape(node.children[node.fields["plan"]], known)
        case "CTERelationRef":
            return _referred(node, _shape(named[int(node.fields["cteId"])], named))
        case "Aggregate":
            _check_below(node.children[0], named)
            found = node.expressions("aggregateExpressions")
            made = _Shape(node.expressions("groupingExpressions"), (), {})
            return _named(made, found)
        case "Project":
            return _named(_shape(node.children[0], named), node.expressions("projectList"))
        case "Filter":
            shape = _shape(node.children[0], named)
            if _has_aggregate(shape.meant(node.expression("condition"))):
                raise NotMergeable(
                    "HAVING, or a filter after the aggregate, sees the values of one batch only;"
                    " remove it, and filter when reading"
                )
            return shape
        case kind if kind in _TRANSPARENT:
            return _shape(node.children[0], named)
        case kind if kind in _BY_ROW and not any(one.kind == "Aggregate" for one in node.all()):
            raise NotMergeable(
                "it has no aggregate, so a key may have many rows; write GROUP BY, or make it a"
                " streaming table"
            )
        case kind:
            raise NotMergeable(_why_not(kind))


def _referred(node: Node, shape: _Shape) -> _Shape:
    """Return the shape of a WITH clause's name, under the ids of this reference."""
    pairs = zip(node.expressions("output"), shape.columns, strict=True)
    known = [(one, shape.meanings[number]) for one, (_, number) in pairs]
    columns = [(str(one.fields["name"]), one.id) for one, _ in known]
    return replace(shape, columns=columns, meanings={one.id: meaning for one, meaning in known})


def _named(shape: _Shape, expressions: Sequence[Node]) -> _Shape:
    """Return a shape whose columns are these expressions."""
    columns = [(str(one.fields["name"]), one.id) for one in expressions]
    meanings = {
        one.id: shape.meant(one.children[0] if one.kind == "Alias" else one) for one in expressions
    }
    return replace(shape, columns=columns, meanings=meanings)


def _check_below(node: Node, named: Mapping[int, Node]) -> None:
    """Reject inputs of the aggregate that do not work row by row."""
    for one in node.all():
        if one.kind not in _BY_ROW:
            raise NotMergeable(_why_not(one.kind))
        if any(name in _SUBQUERIES for name in one.kinds_within()):
            raise NotMergeable(f"its subquery sees the rows of one batch only; {_ELSEWHERE}")
        if one.kind == "CTERelationRef" and int(one.fields["cteId"]) in named:
            _check_below(named[int(one.fields["cteId"])], named)


def _why_not(kind: str) -> str:
    why = _WHY.get(kind, f"{kind} looks at the rows of one batch only")
    return f"{why} {_ELSEWHERE}" if why.endswith(" or") else f"{why}; {_ELSEWHERE}"


def _wrong_columns(shape: _Shape, merge: Mapping[str, str]) -> Iterator[str]:
    for name, number in shape.columns:
        meaning = shape.meanings[number]
        if name in merge:
            if why := _why_unmerged(name, meaning, merge[name]):
                yield why
        elif _has_aggregate(meaning):
            way = next(
                (w for w in ("sum", "min", "max") if not _why_unmerged(name, meaning, w)), ""
            )
            advice = f"write MERGE ({name} {way.upper()})" if way else _ELSEWHERE
            yield f"{name} is an aggregate, and MERGE has no way to merge it; {advice}"


def _why_unmerged(name: str, meaning: Node, how: str) -> str | None:
    """Return why a column cannot be merged in this way; None if it can."""
    aggregate = _bare(meaning, how)
    if aggregate.kind != "AggregateExpression":
        if not _has_aggregate(aggregate):
            return f"{name} is not an aggregate, so it is a key; remove it from MERGE"
        return (
            f"{name} is computed from aggregates, and parts of that cannot be merged; give each"
            " aggregate a column of its own, and compute from them when reading"
        )
    function = aggregate.children[0].kind
    called = _called(function)
    if aggregate.fields["isDistinct"] and _WAYS.get(function) == "sum":
        return (
            f"{name} counts each value once (DISTINCT), and the same value may come in two batches;"
            f" make the value a column of the view and count when reading, or {_ELSEWHERE}"
        )
    way = _WAYS.get(function)
    if way is None:
        advice = (
            "keep a sum and a count, and divide when reading" if called == "avg" else _ELSEWHERE
        )
        return f"{name} is {called}(...), whose parts cannot be merged; {advice}"
    if way != how:
        right = f"write {name} {way.upper()}"
        return f"{name} is {called}(...), and cannot be merged by {how.upper()}; {right}"
    return None


def _called(function: str) -> str:
    """Return the SQL name of a function, from Spark's class name."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", function.removesuffix("Agg")).lower()
    return _NAMES.get(function, words)


def _bare(meaning: Node, how: str) -> Node:
    """Return the aggregate inside of neutral expressions: coalesce(sum, 0), exact casts."""
    while True:
        if isinstance(at := meaning.fields.get("replacement"), int):
            meaning = meaning.children[at]
        elif (
            meaning.kind == "Coalesce"
            and how == "sum"
            and all(_is_zero(one) for one in meaning.children[1:])
        ) or (meaning.kind == "Cast" and _is_exact(meaning, how)):
            meaning = meaning.children[0]
        else:
            return meaning


def _is_zero(node: Node) -> bool:
    if node.kind == "Cast":
        return _is_zero(node.children[0])
    value = str(node.fields.get("value", ""))
    return node.kind == "Literal" and re.fullmatch(r"0+(\.0*)?(E.*)?", value) is not None


def _is_exact(cast: Node, how: str) -> bool:
    """Return whether casting before a merge equals casting after it.

    Casts between numbers keep the order for a minimum or maximum. A sum must not be rounded.
    """
    wanted = str(cast.fields["dataType"])
    aggregate = cast.children[0]
    function = aggregate.children[0] if aggregate.kind == "AggregateExpression" else aggregate
    if how == "sum" and function.kind in ("Count", "CountIf", "RegrCount"):
        return _is_number(wanted) and wanted not in ("float", "double")
    found = _type_of(function.children[0]) if function.children else None
    if found is None or not _is_number(found) or not _is_number(wanted):
        return False
    if how != "sum":
        return True
    if _INTEGRAL.fullmatch(found):
        return _INTEGRAL.fullmatch(wanted) is not None or _DECIMAL.fullmatch(wanted) is not None
    has, gets = _DECIMAL.fullmatch(found), _DECIMAL.fullmatch(wanted)
    return has is not None and gets is not None and int(has[2]) <= int(gets[2])


def _is_number(kind: str) -> bool:
    return kind in ("float", "double") or bool(
        _INTEGRAL.fullmatch(kind) or _DECIMAL.fullmatch(kind)
    )


def _type_of(node: Node) -> str | None:
    """Return the type of a column, cast or literal; the plan lacks it for other expressions."""
    found: Any = node.fields.get("dataType")
    return found if isinstance(found, str) else None


def _has_aggregate(node: Node) -> bool:
    return any(one.kind == "AggregateExpression" for one in node.all())


def _hidden_groups(shape: _Shape, merge: Mapping[str, str]) -> Iterator[str]:
    """Report groups that the view's columns do not identify: their rows would become one."""
    shown = {
        meaning
        for name, number in shape.columns
        if name not in merge
        for meaning in _identified_by(shape.meanings[number])
    }
    for group in shape.groups:
        name = str(group.fields.get("name", "")) or "an expression"
        if name == "session_window":
            yield f"a session may continue in the next batch; {_ELSEWHERE}"
        elif group.meaning() in shown or group.kind == "Literal":
            continue
        elif name == "spark_grouping_id":
            yield (
                "ROLLUP, CUBE and GROUPING SETS make rows that only grouping_id() distinguishes;"
                " add grouping_id() AS level to its columns"
            )
        else:
            yield (
                f"it groups by {name}, which is not one of its columns, so rows of several groups"
                " would become one; select the grouping columns, or write GROUP BY ALL"
            )


def _identified_by(meaning: Node) -> Iterator[tuple[Any, ...]]:
    """Yield the groups that a column identifies: itself, and a time window by its start or end."""
    yield meaning.meaning()
    inner = meaning.children[0] if meaning.kind == "GetStructField" else None
    if inner is not None and inner.fields.get("name") == "window":
        yield inner.meaning()
