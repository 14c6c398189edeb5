"""Descriptors are aligned with those of the schema's author."""

from headrace.serdes.protobuf.parsing import parse


def test_only_written_json_names_are_kept() -> None:
    schema = parse(
        'message A { optional int32 a_b = 1; optional int32 c_d = 2 [json_name = "cD"]; '
        "optional group G = 3 { optional int32 e_f = 1; } map<int32, int32> g_h = 4; "
        "extensions 10; } extend A { optional group H = 10 { optional int32 i_j = 1; } }"
    )
    assert str(schema.descriptor).count("json_name") == 1


def test_nested_messages_have_the_order_of_the_text() -> None:
    schema = parse(
        'syntax = "proto3"; message A { repeated MEntry m = 1; message B { repeated NEntry n = 1; '
        "message C {} message NEntry { option map_entry = true; string key = 1; C value = 2; } } "
        "message MEntry { option map_entry = true; string key = 1; B value = 2; } message D {} }"
    )
    (message,) = schema.descriptor.message_type
    assert [nested.name for nested in message.nested_type] == ["B", "MEntry", "D"]
    assert [nested.name for nested in message.nested_type[0].nested_type] == ["C", "NEntry"]
