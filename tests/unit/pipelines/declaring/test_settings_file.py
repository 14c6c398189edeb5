"""pipeline.toml: its values, and what is wrong with it, by line."""

from pathlib import Path

import pytest

from headrace.pipelines.declaring.settings_file import SettingsFile
from headrace.pipelines.model import (
    Architecture,
    Gate,
    PipelineSettings,
    Promotion,
    Requirement,
    Source,
)
from headrace.pipelines.problems import PipelineError


def read(folder: Path, text: str, **environment: str) -> SettingsFile:
    (folder / "pipeline.toml").write_text(text, encoding="utf-8")
    return SettingsFile(folder, environment)


def complaints(folder: Path, text: str) -> list[str]:
    file = read(folder, text)
    file.settings()
    file.sources()
    return [str(problem) for problem in file.problems]


def test_all_settings_of_a_pipeline_are_read(tmp_path: Path) -> None:
    """ARC-1, ARC-2: the architecture is one switch."""
    file = read(
        tmp_path,
        """
        [pipeline]
        name = "shop"
        version = 7
        architecture = "lambda"
        bootstrap = "one:9092,two:9092"
        lake = "tables"
        master = "spark://host:7077"
        trigger = "5 seconds"
        refresh = "*/5 * * * *"
        group = "shops"
        libraries = ["sql/*.sql"]
        driver_rows_max = 5
        [spark]
        spark.sql.shuffle.partitions = 8
        "spark.speculation" = false
        [client]
        "sasl.username" = "ada"
        [zones]
        sandbox = "A place to try things"
        """,
    )
    assert file.settings() == PipelineSettings(
        name="shop",
        version="7",
        architecture=Architecture.LAMBDA,
        bootstrap="one:9092,two:9092",
        names_brokers=True,
        client={"sasl.username": "ada"},
        lake=str(tmp_path / "tables"),
        master="spark://host:7077",
        spark={"spark.sql.shuffle.partitions": "8", "spark.speculation": "false"},
        trigger="5 seconds",
        refresh="*/5 * * * *",
        libraries=("sql/*.sql",),
        driver_rows_max=5,
        group="shops",
        zones=("raw", "staging", "trusted", "refined", "sandbox"),
    )
    assert file.problems == []


def test_sources_configure_how_topics_are_read(tmp_path: Path) -> None:
    """ARC-7: entry rules filter, categorise and prioritise."""
    file = read(
        tmp_path,
        """[pipeline]
name = "shop"
[sources.orders]
topics = ["orders", "orders-old"]
format = "json"
schema = "id BIGINT"
where = "id > 0"
category = "if(id > 9, 'big', 'small')"
priority = 3
[sources.orders.options]
maxOffsetsPerTrigger = 1000
includeHeaders = true
[sources.events]
pattern = "events-.*"
[sources.clicks]
""",
    )
    sources = file.sources()
    assert sources["orders"] == Source(
        name="orders",
        location=sources["orders"].location,
        topic="orders,orders-old",
        format="json",
        schema="id BIGINT",
        where="id > 0",
        category="if(id > 9, 'big', 'small')",
        priority=3,
        options={"maxOffsetsPerTrigger": "1000", "includeHeaders": "true"},
    )
    assert str(sources["orders"].location) == "pipeline.toml:3"
    assert (sources["events"].topic, sources["events"].topic_pattern) == (None, "events-.*")
    assert sources["clicks"].topic == "clicks"


def test_a_schema_in_a_file_is_found_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text("{}")
    file = read(
        tmp_path, '[sources.orders]\nformat = "avro"\nschema = "order.avsc"\n[pipeline]\nname="x"'
    )
    assert file.sources()["orders"].schema == str(tmp_path / "order.avsc")


def test_secrets_come_from_the_environment_and_go_nowhere(tmp_path: Path) -> None:
    text = '[pipeline]\nname = "x"\nbootstrap = "${B:-host:1}"\n[client]\n"a" = "${SECRET}$$"'
    file = read(tmp_path, text, SECRET="hunter2")
    settings = file.settings()
    assert settings.client == {"a": "hunter2$"}
    assert settings.bootstrap == "host:1"
    assert "hunter2" not in repr(settings)


def test_a_variable_that_is_not_set_is_reported_by_name(tmp_path: Path) -> None:
    text = '[pipeline]\nname = "x"\n[client]\n"sasl.password" = "${SECRET}"'
    assert complaints(tmp_path, text) == [
        "pipeline.toml:4: the variable SECRET is not set; set it, or write ${SECRET:-default}"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "pipeline.toml:1: [pipeline] is missing"),
        ("[pipeline]\nversion = 1", 'pipeline.toml:1: [pipeline] lacks name; write name = "..."'),
        (
            '[pipeline]\nname="x"\n\ntriger = "1 s"',
            "pipeline.toml:4: [pipeline] has no triger; did",
        ),
        (
            '[pipeline]\nname="x"\ntrigger = "often"',
            "pipeline.toml:3: 'often' is not an interval",
        ),
        (
            '[pipeline]\nname="x"\nrefresh = "often"',
            "pipeline.toml:3: 'often' is not an interval",
        ),
        (
            '[pipeline]\nname="x"\narchitecture="kapa"',
            "pipeline.toml:3: architecture is 'kapa', and can be kappa or lambda; did you mean k",
        ),
        ('[pipeline]\nname="x"\ndriver_rows_max=-1', "pipeline.toml:3: driver_rows_max is a"),
        ('[pipeline]\nname="x"\nlibraries="a"', "pipeline.toml:3: libraries must be a list of"),
        ('[pipeline]\nname="x"\n[zones]\ntest = 3', "pipeline.toml:4: test must be a text that"),
        (
            '[pipeline]\nname="x"\n[zones.trusted]\nreads = ["stagin"]',
            "pipeline.toml:4: reads: there is no zone stagin; there are sources, raw, staging, "
            "trusted, refined, quarantine; did you mean staging",
        ),
        (
            '[pipeline]\nname="x"\n[zones.trusted]\nrequires = ["keys", "comment"]',
            "pipeline.toml:4: requires is 'keys', and can be checks, expectations, key or comment; "
            "did you mean key?",
        ),
        (
            '[pipeline]\nname="x"\n[zones.trusted]\nquarantined_max = 5',
            "pipeline.toml:4: quarantined_max is 5, and must be a share from 0 to below 1",
        ),
        (
            '[pipeline]\nname="x"\n[zones.trusted]\njudged_rows_min = 5',
            "pipeline.toml:4: judged_rows_min needs quarantined_max",
        ),
        ('[pipeline]\nname="The X"', "pipeline.toml:2: 'The X' is not a valid name of a pipeline"),
        ('[pipeline]\nname="x"\n[source.a]', "pipeline.toml:3: there is no [source]; did you mean"),
        ('[pipeline]\nname="x"\n[sources]\na = 1', "pipeline.toml:4: a source is a table"),
        ('spark = 3\n[pipeline]\nname="x"', "pipeline.toml:1: spark must be a table"),
        ('[pipeline]\nname="x"\n[sources.A]', "pipeline.toml:3: 'A' is not a valid name"),
        ('[pipeline]\nname="x"\n[sources.a]\ntopc="t"', "pipeline.toml:4: [sources.a] has no topc"),
        (
            '[pipeline]\nname="x"\n[sources.a]\nformat="xml"',
            "pipeline.toml:4: format is 'xml', and can be bytes, json, csv, avro or protobuf",
        ),
        ('[pipeline]\nname="x"\n[sources.a]\nformat="json"', "pipeline.toml:4: sources.a has the"),
        (
            '[pipeline]\nname="x"\n[sources.a]\ntopic="t"\npattern="p"',
            "pipeline.toml:3: sources.a has several of topic, topics and pattern",
        ),
        (
            '[pipeline]\nname="x"\n[sources.a]\npattern="ord(ers"',
            "pipeline.toml:4: 'ord(ers' is not a valid regular expression: missing )",
        ),
        (
            '[pipeline]\nname="x"\nlake="s3://bucket/lake"',
            "pipeline.toml:3: lake is s3://bucket/lake, and must be a folder",
        ),
        (
            '[pipeline]\nname="x"\n[sources.a]\nformat="avro"\nschema="no.avsc"',
            "pipeline.toml:5: there is no file no.avsc",
        ),
        (
            '[pipeline]\nname="x"\n[sources.a]\nformat="json"\nschema="a INT"\nconnector="kafka"',
            "pipeline.toml:6: sources.a: the stock connector reads bytes only",
        ),
        ('[pipeline]\nname="x"\n[zones]\nsources = ""', "pipeline.toml:4: sources is reserved"),
        (
            '[pipeline]\nname="x"\n[client]\na = [1]',
            "pipeline.toml:4: a must be a text or a number",
        ),
    ],
)
def test_invalid_settings_are_reported_with_their_line(
    tmp_path: Path, text: str, message: str
) -> None:
    assert any(line.startswith(message) for line in complaints(tmp_path, text)), complaints(
        tmp_path, text
    )


def test_all_invalid_settings_are_reported_at_once(tmp_path: Path) -> None:
    text = """[pipeline]
nam = "x"
architecture = "mu"
libraries = "a"
trigger = "often"
[client]
a = [1]
b = [2]
[zones]
sources = ""
[zones.trusted]
reads = "staging"
requires = ["key", "love"]
[sources.s]
format = "xml"
priority = "high"
[sources.t]
format = "json"
"""
    lines = sorted(int(line.split(":")[1]) for line in complaints(tmp_path, text))
    assert lines == [1, 2, 3, 4, 5, 7, 8, 10, 12, 13, 15, 16, 18]


def test_a_zone_has_rules_of_promotion(tmp_path: Path) -> None:
    """ARC-4: what may be read, what a table must have, and when a batch is let in."""
    text = """[pipeline]
name = "x"
[zones]
sandbox = "A place to try things"
[zones.refined]
reads = ["trusted", "refined"]
requires = ["comment"]
[zones.trusted]
comment = "What can be relied on"
requires = ["checks"]
quarantined_max = 0.05
judged_rows_min = 20
"""
    file = read(tmp_path, text)
    assert file.settings().promotions == {
        "refined": Promotion(("trusted", "refined"), (Requirement.COMMENT,)),
        "trusted": Promotion(requires=(Requirement.CHECKS,), gate=Gate(0.05, 20)),
    }
    assert file.problems == []


def test_options_need_no_quotes_around_their_dots(tmp_path: Path) -> None:
    text = '[pipeline]\nname="x"\n[sources.a.options]\nschema.registry.url = "http://host"'
    file = read(tmp_path, text)
    assert file.sources()["a"].options == {"schema.registry.url": "http://host"}


def test_invalid_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"^pipeline.toml:2: "):
        read(tmp_path, "[pipeline]\nname = ")


def test_a_folder_without_a_pipeline_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="headrace pipelines init NAME"):
        SettingsFile(tmp_path)
    with pytest.raises(PipelineError, match="there is no folder"):
        SettingsFile(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("master", "told"),
    [
        (
            "k8s://https://kubernetes.default.svc",
            ["pipeline.toml:3: k8s://https://kubernetes.defa"],
        ),
        ("k8s://https://kubernetes.default.svc:443", []),
        ("spark://host:7077", []),
    ],
)
def test_a_master_on_kubernetes_needs_its_port(
    master: str, told: list[str], tmp_path: Path
) -> None:
    file = read(tmp_path, f'[pipeline]\nname = "x"\nmaster = "{master}"\n')
    file.settings()
    assert [str(one)[:46] for one in file.problems] == told
