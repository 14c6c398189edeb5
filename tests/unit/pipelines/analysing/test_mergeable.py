"""Aggregates that may be kept by parts, recognised by Spark's plans."""

from typing import Any

import pytest

from headrace.pipelines.analysing.mergeable import complaints
from headrace.pipelines.analysing.plans import Plan, tree_of

Written = list[dict[str, Any]]
"""A tree as Spark writes it: its nodes from the top."""
TABLE: Written = [{"class": "a.StreamingRelationV2", "num-children": 0}]


def node(kind: str, *children: Written, **fields: Any) -> Written:
    own = {"class": f"org.apache.spark.{kind}", "num-children": len(children), **fields}
    return [own, *(one for child in children for one in child)]


def column(name: str, number: int, kind: str = "long") -> Written:
    return node("AttributeReference", name=name, dataType=kind, exprId={"id": number})


def alias(name: str, number: int, expression: Written) -> Written:
    return node("Alias", expression, name=name, exprId={"id": number})


def call(function: str, *arguments: Written, is_distinct: bool = False) -> Written:
    return node("AggregateExpression", node(function, *arguments), isDistinct=is_distinct)


def literal(value: str) -> Written:
    return node("Literal", value=value, dataType="integer")


def cast(expression: Written, kind: str) -> Written:
    return node("Cast", expression, dataType=kind)


def aggregate(
    *columns: Written, groups: tuple[Written, ...] = (), below: Written = TABLE
) -> Written:
    return node("Aggregate", below, groupingExpressions=groups, aggregateExpressions=columns)


def project(below: Written, *columns: Written) -> Written:
    return node("Project", below, projectList=columns)


K, X, PRICE = column("k", 1), column("x", 2), column("price", 3, "decimal(10,2)")
REAL = column("real", 4, "double")
N = alias("n", 10, call("Count", literal("1")))
BY_K = aggregate(K, N, groups=(K,))


def told(plan: Written, *, is_repeatable: bool = True, **merge: str) -> list[str]:
    return complaints(Plan(tree_of(plan), is_repeatable), merge or {"n": "sum"})


def told_of(expression: Written, how: str = "sum") -> str:
    found = told(aggregate(K, alias("v", 10, expression), groups=(K,)), v=how)
    return "; ".join(found)


@pytest.mark.parametrize(
    ("expression", "how"),
    [
        (call("Sum", REAL), "sum"),
        (call("Count", X), "sum"),
        (call("CountIf", node("GreaterThan", X, literal("2"))), "sum"),
        (call("Min", X), "min"),
        (call("BoolAnd", X), "min"),
        (call("Max", X), "max"),
        (call("Max", X, is_distinct=True), "max"),
        (node("Coalesce", call("Sum", X), cast(literal("0"), "long")), "sum"),
        (node("Nvl", node("Coalesce", call("Sum", X), literal("0.0")), replacement=0), "sum"),
        (cast(call("Count", X), "integer"), "sum"),
        (cast(call("Sum", PRICE), "decimal(18,2)"), "sum"),
        (cast(call("Sum", X), "decimal(18,2)"), "sum"),
        (cast(call("Max", REAL), "integer"), "max"),
    ],
)
def test_sums_counts_least_and_most_are_merged(expression: Written, how: str) -> None:
    assert told_of(expression, how) == ""


@pytest.mark.parametrize(
    ("expression", "how", "why"),
    [
        (call("Count", X, is_distinct=True), "sum", "v counts each value once (DISTINCT)"),
        (call("Sum", X, is_distinct=True), "sum", "v counts each value once (DISTINCT)"),
        (call("Average", X), "sum", "v is avg(...), whose parts cannot be merged; keep a sum and"),
        (call("First", X), "max", "v is first(...), whose parts cannot be merged"),
        (call("BitOrAgg", X), "sum", "v is bit_or(...), whose parts cannot be merged"),
        (call("Max", X), "sum", "v is max(...), and cannot be merged by SUM; write v MAX"),
        (call("Count", X), "max", "v is count(...), and cannot be merged by MAX; write v SUM"),
        (node("Divide", call("Sum", X), call("Count", X)), "sum", "v is computed from aggregates"),
        (node("Coalesce", call("Max", X), literal("0")), "max", "v is computed from aggregates"),
        (node("Coalesce", call("Sum", X), literal("7")), "sum", "v is computed from aggregates"),
        (cast(call("Sum", REAL), "integer"), "sum", "v is computed from aggregates"),
        (cast(call("Sum", PRICE), "decimal(18,1)"), "sum", "v is computed from aggregates"),
        (cast(call("Max", X), "string"), "max", "v is computed from aggregates"),
        (literal("1"), "sum", "v is not an aggregate, so it is a key"),
    ],
)
def test_aggregates_that_cannot_be_merged_are_refused(
    expression: Written, how: str, why: str
) -> None:
    assert why in told_of(expression, how)


def test_an_aggregate_that_is_not_merged_is_no_key() -> None:
    top = alias("top", 11, call("Max", X))
    (why,) = told(aggregate(K, N, top, groups=(K,)))
    assert why == "top is an aggregate, and MERGE has no way to merge it; write MERGE (top MAX)"


def test_a_choice_after_the_aggregate_may_be_of_keys_only() -> None:
    by_key = node("Filter", BY_K, condition=node("IsNotNull", K))
    by_count = node("Filter", BY_K, condition=node("GreaterThan", column("n", 10), literal("1")))
    assert told(by_key) == []
    assert "HAVING" in told(project(by_count, K, column("n", 10)))[0]


def test_columns_may_be_renamed_above_the_aggregate() -> None:
    renamed = project(BY_K, alias("key", 20, K), alias("total", 21, column("n", 10)))
    assert told(renamed, total="sum") == []
    assert "write total SUM" in told(renamed, total="min")[0]


def test_queries_of_a_with_clause_are_followed() -> None:
    named = node("CTERelationDef", BY_K, id=7)
    used = node("CTERelationRef", cteId=7, output=[column("k", 30), column("n", 31)])
    above = project(used, column("k", 30), column("n", 31))
    assert told(node("WithCTE", named, above, plan=1, cteDefs=[0])) == []
    nested = aggregate(
        column("k", 30), alias("n", 40, call("Sum", column("n", 31))), groups=(column("k", 30),),
        below=used,
    )  # fmt: skip
    (why,) = told(node("WithCTE", named, nested, plan=1, cteDefs=[0]))
    assert "aggregates an aggregate" in why


@pytest.mark.parametrize(
    ("below", "why"),
    [
        (BY_K, "aggregates an aggregate"),
        (node("Distinct", TABLE), "DEDUPLICATE BY"),
        (node("Deduplicate", TABLE), "DEDUPLICATE BY"),
        (node("Join", TABLE, TABLE), "joins rows with those of the same batch"),
        (node("Window", TABLE), "window function"),
        (node("GlobalLimit", TABLE), "LIMIT"),
        (node("Sample", TABLE), "sample"),
        (node("FlatMapGroupsInPandas", TABLE), "FlatMapGroupsInPandas looks at the rows of one"),
        (
            node("Filter", TABLE, condition=node("GreaterThan", X, node("ScalarSubquery"))),
            "its subquery sees the rows of one batch only",
        ),
    ],
)
def test_operators_below_the_aggregate_must_work_row_by_row(below: Written, why: str) -> None:
    (found,) = told(aggregate(K, N, groups=(K,), below=below))
    assert why in found
    assert told(aggregate(K, N, groups=(K,), below=node("Union", TABLE, TABLE))) == []


@pytest.mark.parametrize(
    ("above", "why"),
    [("GlobalLimit", "LIMIT"), ("Window", "window function"), ("Distinct", "duplicates")],
)
def test_nothing_may_choose_among_the_rows_of_the_aggregate(above: str, why: str) -> None:
    (found,) = told(node(above, BY_K))
    assert why in found


def test_rows_without_an_aggregate_are_refused() -> None:
    (why,) = told(project(TABLE, K, alias("n", 10, literal("1"))))
    assert "no aggregate" in why


def test_grouping_expressions_must_be_columns_of_the_result() -> None:
    hour = node("TruncTimestamp", literal("HOUR"), column("ts", 5))
    assert told(aggregate(alias("hour", 11, hour), N, groups=(hour,))) == []
    (why,) = told(aggregate(N, groups=(K,)))
    assert "it groups by k, which is not one of its columns" in why
    (why,) = told(aggregate(alias("u", 11, node("Upper", K)), N, groups=(K,)))
    assert "it groups by k, which is not one of its columns" in why
    assert told(aggregate(N)) == []


def test_a_time_window_is_identified_by_its_start_and_a_session_is_refused() -> None:
    for name, wrong in (("window", 0), ("session_window", 1)):
        window = column(name, 6, "struct")
        start = alias("start", 11, node("GetStructField", window, ordinal=0, name="start"))
        assert len(told(aggregate(start, N, groups=(window,)))) == wrong


def test_rollups_are_identified_by_their_grouping_id() -> None:
    level = column("spark_grouping_id", 8)
    (why,) = told(aggregate(K, N, groups=(K, level)))
    assert "add grouping_id()" in why
    assert told(aggregate(K, alias("level", 11, level), N, groups=(K, level))) == []


def test_queries_that_depend_on_the_time_are_refused() -> None:
    (why,) = told(BY_K, is_repeatable=False)
    assert "current_timestamp" in why
