"""The dry run with Spark: every query analysed, each complaint at its line."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import ParseException

from headrace.lake.catalog import PROPERTIES, Lake
from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.checking import check
from headrace.pipelines.analysing.plans import is_repeatable, plan_text
from headrace.pipelines.analysing.spark_errors import quiet
from headrace.pipelines.analysing.topic_checks import check_topics
from headrace.pipelines.declaring.sql_mistakes import KEYWORDS
from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.tables.preparation import Preparation
from headrace.testing.process import BrokerProcess
from tests.builders.declared_pipelines import SETTINGS, load_folder
from tests.builders.mistyped_sql import MISTYPED, ODD, UNMATCHED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import MakeTopic

RAW = "CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);\n"
WRONG = (
    RAW
    + """CREATE STREAMING TABLE staging.a AS
SELECT id,
  prize
FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.b AS SELECT * FROM STREAM(staging.a);
CREATE STREAMING TABLE staging.c AS SELECT * FROM raw.orders;
CREATE STREAMING TABLE staging.d AS SELECT id, count(*) AS n FROM STREAM(raw.orders) GROUP BY id;
CREATE STREAMING TABLE staging.e AS SELECT id,, op FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.f
  (CONSTRAINT p EXPECT (prize > 1), CONSTRAINT q EXPECT (price), CONSTRAINT r EXPECT UNIQUE (idd),
   CONSTRAINT s EXPECT BATCH (avg(prize) > 1), CONSTRAINT t EXPECT FRESH op WITHIN 1 HOUR)
  PARTITIONED BY (hour) KEYS (key)
AS SELECT * FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.g AS SELECT id FROM STREAM(raw.orders);
CREATE FLOW g2 AS INSERT INTO staging.g BY NAME SELECT true AS id FROM STREAM(raw.orders);
CREATE STREAMING TABLE trusted.h;
CREATE FLOW h AS AUTO CDC INTO trusted.h FROM STREAM(raw.orders) KEYS (idd) SEQUENCE BY tss
  APPLY AS DELETE WHEN opp = 'D';
CREATE MATERIALIZED VIEW refined.i AS SELECT * FROM STREAM(raw.orders);
CREATE MERGED VIEW refined.j MERGE (m SUM) AS SELECT id, 1 AS n FROM STREAM(raw.orders);
CREATE STREAMING TABLE trusted.o;
CREATE FLOW o AS AUTO CDC INTO trusted.o FROM STREAM(raw.orders) KEYS (id) SEQUENCE BY abs(tss);
CREATE STREAMING TABLE trusted.p;
CREATE FLOW p1 AS AUTO CDC INTO trusted.p FROM STREAM(raw.orders) KEYS (id) SEQUENCE BY ts;
CREATE FLOW p2 AS AUTO CDC INTO trusted.p FROM STREAM(raw.orders) KEYS (id) SEQUENCE BY id;
CREATE STREAMING TABLE trusted.q;
CREATE TEMPORARY VIEW bytes AS
  SELECT id, op AS _error, CAST(op AS BINARY) AS _payload FROM STREAM(raw.orders);
CREATE FLOW q AS AUTO CDC INTO trusted.q FROM STREAM(bytes) KEYS (_error) SEQUENCE BY _payload;
"""
)
FUNCTIONS = """from headrace import pipelines as dp

@dp.table(name="staging.k")
def k():
    frame = dp.read_stream("raw.orders")
    return frame.select("nope")

@dp.table(name="staging.l")
def l():
    return dp.read_stream("raw." + "nowhere")

@dp.table(name="staging.m")
def m():
    return {}["x"]

@dp.table(name="staging.n")
def n():
    dp.read_stream("raw.orders")
"""


def test_all_mistakes_are_reported_at_once_each_at_its_line(
    spark: "SparkSession", tmp_path: Path
) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": WRONG, "b.py": FUNCTIONS})
    found = [str(one) for one in check(pipeline, spark=spark).problems]
    wanted = [
        ("a.sql:4: ", "`prize` cannot be resolved. Did you mean one of the following? [`price`"),
        ("a.sql:7: ", "staging.c: it reads no stream; write STREAM(name)"),
        ("a.sql:8: ", "staging.d: Invalid streaming output mode: append."),
        ("a.sql:9: ", "Syntax error at or near ','"),
        ("a.sql:10: ", "staging.f has no column hour; it has id, price, ts, op"),
        ("a.sql:10: ", "staging.f has no column key"),
        ("a.sql:10: ", "the expectation 'p' of staging.f: A column"),
        ("a.sql:10: ", "the expectation 'q' of staging.f: it is a double, and must be true or fal"),
        ("a.sql:10: ", "staging.f (unique) has no column idd"),
        ("a.sql:10: ", "the expectation 's' of staging.f: A column"),
        ("a.sql:10: ", "the expectation 't' of staging.f: op is a string; freshness needs a time"),
        ("a.sql:16: ", "staging.g: g2 does not fit together with staging.g, at a.sql:15: col"),
        ("a.sql:18: ", "h has no column idd; it has id, price, ts, op"),
        ("a.sql:18: ", "h has no column tss"),
        ("a.sql:18: ", "h, deletes: A column"),
        ("a.sql:20: ", "refined.i is computed whole, and its query reads a stream"),
        ("a.sql:21: ", "refined.j has no column m; it has id, n"),
        ("a.sql:23: ", "o, sequence: A column"),
        ("a.sql:26: ", "p2 does not fit together with p1, at a.sql:25: column __SEQUENCE is tim"),
        ("a.sql:30: ", "q: _error is about the row and not stored in a table"),
        ("a.sql:30: ", "q: _payload is about the row and not stored in a table"),
        ("b.py:6: ", "`nope` cannot be resolved"),
        ("b.py:8: ", "there is no raw.nowhere to read"),
        ("b.py:14: ", "KeyError: 'x'"),
        ("b.py:16: ", "n returned NoneType"),
    ]
    assert [line[: len(place)] for line, (place, _) in zip(found, wanted, strict=True)] == [
        place for place, _ in wanted
    ], "\n".join(found)
    for line, (_, text) in zip(found, wanted, strict=True):
        assert text in line
    assert not any("\n" in line or "SQLSTATE" in line for line in found)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("id", []),
        (
            "number",
            [
                "a.sql:3: refined.n counts rows of raw.orders once, which has no column number; it"
                " has id, price, ts, op, topic, partition, offset, timestamp, day"
            ],
        ),
    ],
)
def test_deduplicated_records_are_identified_by_columns_of_the_table_behind_a_view(
    column: str, told: list[str], spark: "SparkSession", tmp_path: Path
) -> None:
    sql = (
        RAW + "CREATE TEMPORARY VIEW numbers AS SELECT id AS number FROM STREAM(raw.orders);\n"
        f"CREATE MERGED VIEW refined.n MERGE (n SUM) DEDUPLICATE BY ({column}) AS"
        " SELECT number % 2 AS odd, count(*) AS n FROM STREAM(numbers) GROUP BY number % 2;\n"
    )
    found = check(load_folder(tmp_path, {"a.sql": sql}), spark=spark).problems
    assert [str(one) for one in found] == told


def test_sparks_parser_agrees_with_the_check_without_spark(
    spark: "SparkSession",
) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for sql in (one[0] for one in (*MISTYPED, *UNMATCHED)):
        with pytest.raises(ParseException):
            parser.parsePlan(sql)
    for sql in ODD:
        parser.parsePlan(sql)
    words = {row.keyword for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()}
    assert words <= KEYWORDS


MERGED = {
    "sum(price) AS v, count(*) FILTER (WHERE id > 1) AS w": "",
    "coalesce(sum(id), 0) AS v, CAST(count_if(id > 1) AS INT) AS w": "",
    "count(DISTINCT id) AS v, count(*) AS w": "v counts each value once (DISTINCT)",
    "avg(price) AS v, try_sum(id) AS w": "v is avg(...)",
    "sum(price) / count(*) AS v, count(id) AS w": "v is computed from aggregates",
    "first(id) AS v, count(*) AS w": "v is first(...)",
    "sum(id) AS v, max(id) AS w": "w is max(...), and cannot be merged by SUM; write w MAX",
}
WAYS = {
    "STREAM(raw.orders) GROUP BY op": "",
    "STREAM(raw.orders) GROUP BY ALL ORDER BY v": "",
    "STREAM(raw.orders) GROUP BY op HAVING op > 'a'": "",
    "(SELECT o.*, explode(array(1, 2)) AS e FROM STREAM(raw.orders) o) GROUP BY op": "",
    "STREAM(raw.orders) GROUP BY op HAVING count(*) > 1": "HAVING",
    "STREAM(raw.orders) GROUP BY op LIMIT 3": "LIMIT",
    "STREAM(raw.orders) GROUP BY op, id": "it groups by id, which is not one of its columns",
    "STREAM(raw.orders) GROUP BY ROLLUP (op)": "add grouping_id()",
    "STREAM(raw.orders) GROUP BY op, session_window(ts, '1 minute')": "a session may continue",
    "STREAM(raw.orders) WHERE ts > now() - INTERVAL 1 DAY GROUP BY op": "current_timestamp",
    "(SELECT DISTINCT op, id FROM STREAM(raw.orders)) GROUP BY op": "DEDUPLICATE BY",
    "(SELECT op, max(id) AS id FROM STREAM(raw.orders) GROUP BY op) GROUP BY op": "an aggregate,",
    "(SELECT a.op, id FROM STREAM(raw.orders) a JOIN STREAM(raw.orders) b USING (id))"
    " GROUP BY op": "joins rows",
}


def test_merged_views_that_cannot_be_kept_by_parts_are_rejected(
    spark: "SparkSession", tmp_path: Path
) -> None:
    cases = [
        (f"op, {what} FROM STREAM(raw.orders) GROUP BY op", why) for what, why in MERGED.items()
    ]
    cases += [(f"op, sum(id) AS v, count(*) AS w FROM {way}", why) for way, why in WAYS.items()]
    views = [
        f"CREATE MERGED VIEW refined.v{n} MERGE (v SUM, w SUM) AS SELECT {text};\n"
        for n, (text, _) in enumerate(cases)
    ]
    functions = """from headrace import pipelines as dp
from pyspark.sql import functions as F

@dp.merged_view(name="refined.minutes", merge={"n": "sum", "last": "max"})
def minutes():
    grouped = dp.read_stream("raw.orders").groupBy(F.window("ts", "1 minute"), "op")
    made = grouped.agg(F.count("*").alias("count"), F.max("id").alias("last"))
    return made.select("window.start", "op", F.col("count").alias("n"), "last")

@dp.merged_view(name="refined.often", merge={"count": "sum"})
def often():
    return dp.read_stream("raw.orders").groupBy("op").count().where("count > 1")
"""
    pipeline = load_folder(tmp_path, {"a.sql": RAW + "".join(views), "b.py": functions})
    found = [str(one) for one in check(pipeline, spark=spark).problems]
    wanted = [(f"a.sql:{n + 2}: ", why) for n, (_, why) in enumerate(cases) if why]
    wanted.append(("b.py:10: ", "HAVING, or a filter after the aggregate"))
    assert [one.partition(": ")[0] + ": " for one in found] == [place for place, _ in wanted], found
    for one, (_, why) in zip(found, wanted, strict=True):
        assert "cannot be merged from batches: " in one
        assert why in one


def test_a_plan_is_stable_and_shows_dependence_on_the_moment(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Views are recomputed if it differs, or if the query depends on the clock or on chance."""
    sql = (
        RAW
        + """
    CREATE TEMPORARY VIEW v AS SELECT id, op FROM raw.orders WHERE id > 1;
    CREATE MATERIALIZED VIEW refined.plain AS SELECT op, (SELECT max(id) FROM v) AS n FROM v;
    CREATE MERGED VIEW refined.m MERGE (n SUM) AS
      SELECT op, count(*) AS n FROM STREAM(raw.orders) GROUP BY op;
    CREATE MATERIALIZED VIEW refined.now AS SELECT max(current_timestamp()) AS at FROM v;
    CREATE MATERIALIZED VIEW refined.today AS SELECT id FROM raw.orders WHERE ts > current_date();
    CREATE MATERIALIZED VIEW refined.chance AS SELECT id FROM v WHERE rand() > 0.5;
    """
    )
    functions = """from headrace import pipelines as dp
from pyspark.sql import functions as F

@dp.materialized_view(name="refined.f")
def f():
    return dp.read("v").withColumn("twice", F.udf(lambda n: 2 * n)("id"))
"""
    pipeline = load_folder(tmp_path, {"a.sql": sql, "b.py": functions})
    analyses = [Analysis(spark, pipeline) for _ in range(2)]
    for analysis in analyses:
        analysis.run()
    frames, again = (analysis.frames for analysis in analyses)
    passing = {name for name, frame in frames.items() if not is_repeatable(frame)}
    assert sorted(passing) == ["refined.chance", "refined.now", "refined.today"]
    lasting = frames.keys() - passing
    assert {one: plan_text(frames[one]) for one in lasting} == {
        one: plan_text(again[one]) for one in lasting
    }


def test_columns_and_edges_are_as_spark_sees_them(spark: "SparkSession", tmp_path: Path) -> None:
    pipeline = load_folder(
        tmp_path,
        {
            "a.sql": RAW + "CREATE TEMPORARY VIEW v AS SELECT id, ts FROM STREAM(raw.orders);\n"
            "CREATE STREAMING TABLE trusted.t AS SELECT *, date(ts) AS day FROM STREAM(v);",
            "b.py": "from headrace import pipelines as dp\n"
            "@dp.materialized_view(name='refined.n')\n"
            "def n(): return dp.read('.'.join(['trusted', 't'])).groupBy('day').count()",
        },
    )
    report = check(pipeline, spark=spark)
    assert report.problems == ()
    assert report.columns["trusted.t"] == (("id", "bigint"), ("ts", "timestamp"), ("day", "date"))
    assert report.columns["refined.n"] == (("day", "date"), ("count", "bigint"))
    assert [edge.source for edge in report.graph.inputs("refined.n")] == ["trusted.t"]


def test_quarantine_is_read_where_rows_can_be_rejected(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sql = (
        "CREATE MATERIALIZED VIEW refined.bad AS SELECT rule, reason FROM quarantine.raw__orders;\n"
        + RAW
        + "CREATE STREAMING TABLE staging.x AS SELECT id FROM STREAM(raw.orders);\n"
        "CREATE MATERIALIZED VIEW refined.none AS SELECT * FROM quarantine.staging__x;"
    )
    report = check(load_folder(tmp_path, {"a.sql": sql}), spark=spark)
    assert report.columns["refined.bad"] == (("rule", "string"), ("reason", "string"))
    (problem,) = report.problems
    assert str(problem).startswith("a.sql:4: staging.x rejects no rows, so quarantine.")


def test_rules_of_entry_are_checked_against_the_payloads_columns(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """ARC-7: filters and categories at entry."""
    fine = SETTINGS + "where = \"id > 0\"\ncategory = \"if(price > 9, 'big', 'small')\"\n"
    report = check(load_folder(tmp_path / "1", {"a.sql": RAW}, fine), spark=spark)
    assert report.problems == ()
    assert report.columns["raw.orders"][-2:] == (("_category", "string"), ("day", "date"))
    wrong = check(
        load_folder(tmp_path / "2", {"a.sql": RAW}, SETTINGS + 'where = "x > 0"'), spark=spark
    )
    assert "pipeline.toml:5: sources.orders: A column" in str(wrong.problems[0])


def test_a_table_that_is_there_may_grow_but_not_narrow(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """ARC-4: schemas evolve by rule."""
    sql = RAW + "CREATE STREAMING TABLE staging.x AS SELECT id, price FROM STREAM(raw.orders);"
    pipeline = load_folder(tmp_path, {"a.sql": sql})
    lake = Lake(pipeline.settings.lake)
    lake.create("raw.orders", pa.schema([("id", pa.int64())]))
    lake.create("staging.x", pa.schema([("id", pa.int64()), ("price", pa.string())]))
    report = check(pipeline, spark=spark)
    (problem,) = report.problems
    assert "raw.orders is not partitioned by topic and day" in report.notes[0]
    assert "day" not in dict(report.columns["raw.orders"])
    assert str(problem).startswith("a.sql:2: staging.x does not fit its table: column price is str")


def test_only_columns_of_the_record_itself_partition_raw(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """ARC-4: a payload's own topic has any number of values."""
    sql = """
    CREATE STREAMING TABLE raw.payloads AS SELECT * FROM STREAM(sources.said);
    CREATE TEMPORARY VIEW v AS
      SELECT id, kafka_topic AS topic, kafka_timestamp AS timestamp FROM STREAM(sources.said);
    CREATE STREAMING TABLE raw.records AS SELECT * FROM STREAM(v) WHERE id > 0;
    CREATE STREAMING TABLE raw.again AS SELECT * FROM STREAM(raw.records);
    CREATE STREAMING TABLE raw.computed AS SELECT upper(topic) AS topic, timestamp FROM STREAM(v);
    CREATE STREAMING TABLE raw.mixed AS SELECT topic, timestamp FROM STREAM(v);
    CREATE FLOW m AS INSERT INTO raw.mixed BY NAME
      SELECT topic, timestamp FROM STREAM(sources.said);
    """
    said = (
        '[sources.said]\nformat = "json"\nschema = "id LONG, topic STRING, timestamp TIMESTAMP"\n'
        '[sources.said.options]\nmetadataPrefix = "kafka_"\n'
    )
    pipeline = load_folder(tmp_path, {"a.sql": sql}, SETTINGS + said)
    report = check(pipeline, spark=spark)
    assert report.problems == ()
    parted = [name for name, columns in report.columns.items() if ("day", "date") in columns]
    assert sorted(parted) == ["raw.again", "raw.records"]
    reasons = [note.rpartition(" all of it: ")[2] for note in report.notes]
    assert [reason.partition(" comes from")[0] for reason in reasons] == [
        "topic of raw.payloads",
        "topic of raw.computed",
        "topic of m",
    ]


DAYS = """CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE staging.all AS SELECT * FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.dated AS SELECT *, date(ts) AS Day FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.two;
CREATE FLOW f AS INSERT INTO staging.two BY NAME SELECT id, id AS ID FROM STREAM(raw.orders);
CREATE MATERIALIZED VIEW trusted.y AS SELECT *, date(ts) AS day FROM staging.all;
CREATE STREAMING TABLE trusted.z AS SELECT * EXCEPT (day), 1 AS day FROM STREAM(staging.all);
"""
DAYS_TWICE = [
    "a.sql:3: staging.dated has the column day twice: raw.orders adds one, as it is"
    " partitioned by topic and day. Write SELECT * EXCEPT (day), ..., or PARTITIONED BY ()"
    " at raw.orders",
    "a.sql:5: staging.two has the column id twice; names that differ in small and capital letters"
    " only are the same, so rename one",
    "a.sql:6: trusted.y has the column day twice: raw.orders adds one, as it is"
    " partitioned by topic and day. Write SELECT * EXCEPT (day), ..., or PARTITIONED BY ()"
    " at raw.orders",
]


def test_duplicate_columns_are_reported_before_the_table_is_created(
    spark: "SparkSession", tmp_path: Path
) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": DAYS})
    assert [str(one) for one in check(pipeline, spark=spark).problems] == DAYS_TWICE
    lake = Lake(pipeline.settings.lake)
    with pytest.raises(PipelineError) as raised:
        Preparation(spark, pipeline, lake, lambda _: 1).prepare()
    assert str(raised.value).split("\n") == DAYS_TWICE
    assert list(lake.names()) == []


def test_advice_to_replay_includes_the_problems_of_that_replay(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """ARC-2: a table of raw that was made without a day has one when it is rebuilt."""
    sql = (
        RAW
        + "CREATE STREAMING TABLE staging.x AS SELECT *, date(ts) AS day FROM STREAM(raw.orders);"
    )
    pipeline = load_folder(tmp_path, {"a.sql": sql})
    lake = Lake(pipeline.settings.lake)
    lake.create("raw.orders", pa.schema([("id", pa.int64())]))
    report = check(pipeline, spark=spark)
    Preparation(spark, pipeline, lake, lambda _: 1).prepare()
    assert report.problems == ()
    advice, refusal = report.notes
    assert advice.endswith("rebuild it with headrace pipelines replay FOLDER")
    wanted = "change this before the next replay: a.sql:2: staging.x has the column day twice:"
    assert refusal.startswith(wanted)
    with pytest.raises(PipelineError, match=r"a\.sql:2: staging\.x has the column day twice"):
        Preparation(spark, pipeline, lake, lambda _: 2).prepare()


def test_another_partitioning_is_rejected_and_properties_are_set_and_removed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """ARC-4: tables are as declared, or the difference is reported."""

    def declared(by: str, days: int | None, view_by: str = "op") -> Pipeline:
        kept = (
            f"'delta.logRetentionDuration' = 'interval {days} days', 'delta.targetFileSize' = '9'"
        )
        properties = "" if days is None else f"TBLPROPERTIES ({kept})"
        sql = (
            f"CREATE STREAMING TABLE staging.x PARTITIONED BY ({by}) {properties} AS"
            " SELECT id, op, date(ts) AS day FROM STREAM(sources.orders);\n"
            f"CREATE MATERIALIZED VIEW refined.y PARTITIONED BY ({view_by}) AS"
            " SELECT op, day, count(*) AS n FROM staging.x GROUP BY op, day;\n"
        )
        return load_folder(tmp_path, {"a.sql": sql})

    def prepare(pipeline: Pipeline) -> None:
        Preparation(spark, pipeline, lake, lambda _: 1).prepare()

    lake = Lake(declared("day", 3).settings.lake)
    prepare(declared("day", 3))
    prepare(declared("day", 9))
    table = lake.table("staging.x")
    assert table.properties["delta.logRetentionDuration"] == "interval 9 days"
    table.set_properties({"delta.dataSkippingNumIndexedCols": "3"})  # By hand.
    prepare(declared("day", None))
    by_hand = {"delta.dataSkippingNumIndexedCols": "3"}
    assert table.properties == {**PROPERTIES, **by_hand}
    assert lake.catalog().tables["staging.x"].generations[1].properties == {}
    changed = declared("op", 9, view_by="day")
    found = [str(one) for one in check(changed, spark=spark).problems]
    with pytest.raises(PipelineError) as raised:
        prepare(changed)
    wanted = "a.sql:1: staging.x exists, partitioned by day and not by op; rebuild it with"
    assert [found[0][: len(wanted)], str(raised.value)[: len(wanted)]] == [wanted, wanted]
    assert "a.sql:2: refined.y exists, partitioned by op and not by day" in found[1]


def test_missing_topics_are_reported(
    spark: "SparkSession", tmp_path: Path, broker: BrokerProcess, make_topic: "MakeTopic"
) -> None:
    topic = make_topic("present")
    settings = (
        f'[pipeline]\nname = "shop"\nbootstrap = "{broker.bootstrap_servers}"\n'
        f'[sources.here]\ntopic = "{topic}"\n[sources.gone]\ntopic = "no-such-topic"\n'
        '[sources.many]\npattern = "no-such-.*"\n'
    )
    sql = (
        "CREATE SINK out TOPIC 'not-yet';\n"
        "CREATE FLOW f AS INSERT INTO out BY NAME SELECT value FROM STREAM(sources.here);"
    )
    found = check_topics(load_folder(tmp_path, {"a.sql": sql}, settings))
    assert [str(one.location) for one in found.problems] == ["pipeline.toml:6"]
    assert "headrace topics create no-such-topic" in found.problems[0].text
    assert ["no-such-.*" in found.notes[0], "not-yet" in found.notes[1]] == [True, True]


def test_bytes_are_kept_where_spark_takes_the_column_and_nowhere_else(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """ARC-4: refused rows keep what they were made of."""
    rule = "(CONSTRAINT c EXPECT (n > 1) ON VIOLATION QUARANTINE ROW)"
    sql = f"""
    CREATE STREAMING TABLE raw.chosen {rule}
      AS SELECT id AS n, topic, timestamp FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.whole {rule} AS SELECT *, id AS n FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.text {rule} AS SELECT length(value) AS n FROM STREAM(sources.plain);
    CREATE STREAMING TABLE raw.total {rule} KEYS (one)
      AS SELECT 1 AS one, count(*) AS n FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.trusting AS SELECT id AS n FROM STREAM(sources.orders);
    """
    pipeline = load_folder(tmp_path, {"a.sql": sql}, SETTINGS + "[sources.plain]\n")
    analysis = Analysis(spark, pipeline)
    with quiet():
        analysis.run()
    assert analysis.problems == []
    kept = [flow.name for flow in pipeline.flows if analysis.flow(flow.name).keeps_payloads]
    assert sorted(kept) == ["raw.chosen", "raw.text", "raw.whole"]
    chosen = ["n", "topic", "timestamp", "_payload", "_kept_record", "day"]
    assert analysis.frames["raw.chosen"].columns == chosen
    assert analysis.frames["raw.text"].columns == ["n", "_payload"]
    assert analysis.columns["raw.text"].fieldNames() == ["n"]
    assert analysis.frames["raw.total"].columns == ["one", "n"]
    assert analysis.frames["raw.trusting"].columns == ["n"]
