"""`headrace schema generate`: classes, schemas and tables of each other."""

import json
from pathlib import Path

import pytest

from headrace.cli.schema import command
from headrace.cli.schema_generation import is_class
from headrace.cli.schema_sources import NoSchema
from tests.builders.avro_versions import ID, NOTE, order_text

CLASS = """
from dataclasses import dataclass

@dataclass
class Order:
    id: int
    note: str | None = None
"""


def generated(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    command.main(["generate", *(str(one) for one in arguments)], standalone_mode=False)
    return capsys.readouterr().out


@pytest.fixture
def avro(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(order_text(ID, NOTE))
    return path


@pytest.mark.parametrize(
    ("flavour", "line"),
    [
        ("dataclass", "@dataclass"),
        ("pydantic", "class Order(BaseModel"),
        ("msgspec", "class Order(Struct"),
    ],
)
def test_classes_come_in_three_flavours(
    avro: Path, capsys: pytest.CaptureFixture[str], flavour: str, line: str
) -> None:
    source = generated(capsys, avro, "--flavour", flavour)
    assert line in source
    compile(source, "generated.py", "exec")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}'),
        ("a.proto", 'syntax = "proto3"; message Other {} message Order { int64 id = 1; }'),
    ],
)
def test_classes_come_from_all_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    """SCH-13"""
    (tmp_path / name).write_text(text)
    message = ("--message", "Order") if name.endswith(".proto") else ()
    source = generated(capsys, tmp_path / name, *message)
    assert "class Order:" in source


@pytest.mark.parametrize("type", ["avro", "json", "protobuf"])
def test_a_schema_comes_from_a_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], type: str
) -> None:
    (tmp_path / "shop_orders.py").write_text(CLASS)
    text = generated(capsys, f"{tmp_path / 'shop_orders.py'}:Order", "--type", type)
    assert ("message Order" if type == "protobuf" else '"Order"') in text


def test_tables_and_schemas_are_made_of_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SCH-2"""
    table = tmp_path / "orders.sql"
    table.write_text("CREATE TABLE orders (id BIGINT NOT NULL, note VARCHAR)")
    made = tmp_path / "orders.avsc"
    assert generated(capsys, table, "-o", made) == ""
    assert [field["name"] for field in json.loads(made.read_text())["fields"]] == ["id", "note"]
    assert "BIGINT NOT NULL" in generated(capsys, made, "--sql")


def test_tables_are_made_of_avro_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(NoSchema, match="tables need AVRO"):
        generated(capsys, tmp_path / "a.json", "--sql")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop.orders:Order", True),
        ("models/orders.py:Order.Line", True),
        ("orders-value:3", False),
        ("orders-value:latest", False),
        ("orders-value", False),
        ("orders.json", False),
    ],
)
def test_a_class_is_distinguished_from_a_version(text: str, expected: bool) -> None:
    assert is_class(text) is expected


def test_long_lines_are_broken_where_ruff_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = order_text(ID, {**NOTE, "doc": "Words " * 20})
    (tmp_path / "long.avsc").write_text(text)
    source = generated(capsys, tmp_path / "long.avsc")
    assert "    note: Annotated[\n" in source
