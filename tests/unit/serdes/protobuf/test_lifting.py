"""Descriptors written down as .proto text."""

from headrace.serdes.protobuf.lifting import shortest_float
from headrace.serdes.protobuf.parsing import parse
from headrace.serdes.schemas import Dependency


def lifted(text: str, *dependencies: Dependency) -> str:
    """The text of the descriptor of a text."""
    return parse(parse(text, dependencies).formatted("serialized"), dependencies).canonical()


def test_types_are_named_in_full_and_labels_are_written_in_proto2() -> None:
    assert lifted("package p; message A { optional A a = 1; repeated int32 x = 2; }") == (
        "package p;\n\nmessage A {\n  optional .p.A a = 1;\n  repeated int32 x = 2;\n}\n"
    )


def test_proto3_has_labels_only_where_they_were_written() -> None:
    text = (
        'syntax = "proto3";\n\nmessage A {\n  int32 x = 1;\n  optional int32 y = 2;\n\n'
        "  oneof o {\n    string z = 3;\n  }\n}\n"
    )
    assert lifted(text) == text


def test_editions_have_no_labels() -> None:
    text = 'edition = "2023";\n\nmessage A {\n  reserved x;\n\n  int32 y = 1 [default = 5];\n}\n'
    assert lifted(text) == text


def test_defaults_are_written_by_their_types() -> None:
    text = (
        "\nmessage A {\n"
        '  optional string s = 1 [default = "a\\"é\\n"];\n'
        '  optional bytes b = 2 [default = "\\001\\377x"];\n'
        "  optional double d = 3 [default = -inf];\n"
        "  optional .E e = 4 [default = NEGATIVE];\n"
        "  optional bool t = 5 [default = true];\n"
        "}\nenum E {\n  NEGATIVE = -1;\n}\n"
    )
    assert lifted(text) == text


def test_groups_ranges_and_extensions_survive() -> None:
    text = (
        "\nmessage A {\n  reserved 7 to 9;\n  reserved 100 to max;\n"
        '  reserved "p";\n\n'
        "  optional group G = 1 {\n    optional int32 x = 1;\n  }\n\n"
        "  extensions 20 to 30;\n}\n"
        "enum E {\n  reserved -5 to -3;\n  reserved 10 to max;\n  Z = 0;\n}\n\n"
        "extend .A {\n  optional int32 y = 20;\n}\n"
    )
    assert lifted(text) == text


def test_custom_options_survive_with_all_kinds_of_values() -> None:
    options = Dependency(
        "o.proto",
        'syntax = "proto3"; package o; import "google/protobuf/descriptor.proto"; '
        "message O { string s = 1; bytes b = 2; float f = 3; double d = 4; bool t = 5; E e = 6; "
        "repeated int64 l = 7; map<string, int32> m = 8; O o = 9; } enum E { Z = 0; Y = 1; } "
        "extend google.protobuf.MessageOptions { O o = 50000; repeated int32 r = 50001; }",
    )
    text = (
        'syntax = "proto3";\n\nimport "o.proto";\n\nmessage A {\n  option (o.o) = {\n'
        '    s: "a\\"",\n    b: "\\377",\n    f: 0.1,\n    d: 1e+100,\n    t: true,\n    e: Y,\n'
        "    l: [\n      1,\n      -2\n    ],\n"
        '    m: [\n      {\n        key: "k",\n        value: 3\n      }\n    ],\n'
        "    o: {\n      t: true\n    }\n  };\n"
        "  option (o.r) = 1;\n  option (o.r) = 2;\n}\n"
    )
    assert lifted(text, options) == text


def test_confluents_parameters_of_decimals_have_the_value_first() -> None:
    text = (
        'syntax = "proto3"; import "confluent/meta.proto"; message A { bytes x = 1 '
        '[(confluent.field_meta) = { params: [{ key: "scale" value: "3" }, '
        '{ key: "other" value: "4" }] }]; }'
    )
    assert (
        '      {\n        key: "other",\n        value: "4"\n      },\n'
        '      {\n        value: "3",\n        key: "scale"\n      }\n' in lifted(text)
    )


def test_options_come_in_confluents_order() -> None:
    text = (
        'syntax = "proto3";\n\noption java_package = "a";\noption java_multiple_files = true;\n'
        'option optimize_for = SPEED;\noption go_package = "b";\n\nmessage A {\n'
        "  int64 x = 1 [\n    jstype = JS_STRING,\n    deprecated = true\n  ];\n}\n"
    )
    assert lifted(text) == text


def test_a_float_is_written_as_short_as_it_can_be() -> None:
    assert [shortest_float(value) for value in (0.1, 1.0, 16777216.0, 3.4028234663852886e38)] == [
        "0.1",
        "1",
        "16777216",
        "3.4028235e+38",
    ]
