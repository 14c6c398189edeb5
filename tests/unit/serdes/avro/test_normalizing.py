"""Equivalent schemas have one normal text."""

import pytest

from headrace.serdes.avro.parsing import parse
from headrace.serdes.schemas import Dependency


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ('{"type":"int","b":1,"a":{"z":1,"y":2}}', '{"type":"int","a":{"y":2,"z":1},"b":1}'),
        (
            '{"type":"bytes","zz":1,"scale":2,"precision":4,"logicalType":"decimal"}',
            '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"zz":1}',
        ),
        (
            '{"type":"record","name":"R","doc":"","aliases":["b.B","A"],"fields":[{"name":"x",'
            '"type":"double","default":0,"doc":"","aliases":["q","p"]}]}',
            '{"type":"record","name":"R","fields":[{"name":"x","type":"double","doc":"",'
            '"default":0.0,"aliases":["p","q"]}],"aliases":["A","b.B"]}',
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"x","type":{"type":"map","values":'
            '"float"},"default":{"b":1,"a":2}}]}',
            '{"type":"record","name":"R","fields":[{"name":"x","type":{"type":"map","values":'
            '"float"},"default":{"a":2.0,"b":1.0}}]}',
        ),
        ('{"type":"error","name":"E","fields":[]}', '{"type":"record","name":"E","fields":[]}'),
    ],
)
def test_unordered_parts_are_sorted(text: str, normal: str) -> None:
    assert parse(text).normalized() == normal


def test_references_stay_references() -> None:
    address = '{"type":"fixed","name":"a.F","size":1}'
    schema = parse('["null","a.F"]', [Dependency("a.F", address)])
    assert schema.normalized() == '["null","a.F"]'


def test_a_recursive_record_is_normalized() -> None:
    text = '{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}'
    assert parse(text).normalized() == text
