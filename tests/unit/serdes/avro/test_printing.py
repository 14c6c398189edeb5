"""Schemas are printed as Java's Avro prints them."""

import pytest

from headrace.serdes.avro.parsing import parse


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('{"type": "string"}', '"string"'),
        ('{"type":"int","doc":"lost","b":1,"a":null}', '{"type":"int","b":1,"a":null}'),
        (
            '{"name":"a.b.R","type":"record","fields":[],"namespace":"ignored"}',
            '{"type":"record","name":"R","namespace":"a.b","fields":[]}',
        ),
        (
            '{"type":"enum","symbols":["A"],"default":"A","x":1,"aliases":["O","p.Q"],'
            '"namespace":"n","name":"E","doc":"d"}',
            '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["A"],"default":"A",'
            '"x":1,"aliases":["O","p.Q"]}',
        ),
        (
            '{"type":"record","name":"R","fields":[{"x":1,"aliases":["b"],"order":"IGNORE",'
            '"default":1e10,"doc":"d","type":"double","name":"a"}]}',
            '{"type":"record","name":"R","fields":[{"name":"a","type":"double","doc":"d",'
            '"default":1.0E10,"order":"ignore","aliases":["b"],"x":1}]}',
        ),
        (
            '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed",'
            '"name":"F","namespace":"","size":2}},{"name":"b","type":"n.R"}]}',
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":'
            '{"type":"fixed","name":"F","namespace":"","size":2}},{"name":"b","type":"R"}]}',
        ),
        ('{"type":"error","name":"E","fields":[]}', '{"type":"error","name":"E","fields":[]}'),
    ],
)
def test_attributes_have_the_order_that_java_gives_them(text: str, printed: str) -> None:
    assert parse(text).canonical() == printed


def test_the_parsing_canonical_form_keeps_only_the_encoding() -> None:
    text = (
        '{"type":"record","name":"R","namespace":"n","doc":"d","aliases":["Q"],"fields":[{"name":'
        '"a","type":{"type":"long","logicalType":"timestamp-millis"},"default":1}]}'
    )
    assert parse(text).parsing_canonical_form() == (
        '{"name":"n.R","type":"record","fields":[{"name":"a","type":"long"}]}'
    )
