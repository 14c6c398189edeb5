"""Statements written in the layout of Confluent's registry."""

import pytest

from headrace.serdes.protobuf.elements import File, Option, Quoted
from headrace.serdes.protobuf.printing import print_file
from headrace.serdes.protobuf.reading import read

# Blank lines, their blanks, the order of parts: all of this is what the original writes.
TEXT = """syntax = "proto2";
package shop;

import "a.proto";
import public "b.proto";

option java_package = "shop";
option (rule) = {
  level: 1,
  names: [
    "x",
    "y"
  ],
  parts: [
    {
      a: 1
    }
  ]
};

message Order {
  reserved 5, 7 to 9, 100 to max;
  reserved "p", "q";

  option deprecated = true;

  required int64 id = 1;
  repeated .shop.Order.Line lines = 2 [
    packed = true,
    (rule).level = 2,
    json_name = "l"
  ];
  map<string, Line> by_name = 3 [deprecated = true];

  oneof payment {
    option (rule).level = 3;

    string card = 10;
    int32 cash = 11;
  }

  optional group Extra = 12 {
    optional string note = 1 [default = "none"];
  }

  extensions 20 to 30 [verification = UNVERIFIED];

  extend Order {
    optional int32 ext = 20;
  }

  message Line {}
  enum Kind {
    reserved 5 to max;
    option allow_alias = true;
    A = 0;
    B = 0 [deprecated = true];
  }
}
enum Top {
  ZERO = 0;
}

extend Order {
  optional string other = 21;
}

service Shop {
  option deprecated = true;

  rpc Buy (stream Order) returns (.shop.Order.Line) {
    option idempotency_level = NO_SIDE_EFFECTS;
  };
  rpc Look (Order) returns (stream Order);
}
"""


def with_blanks_on_blank_lines(text: str) -> str:
    """Blank lines within nested messages carry the blanks of their depth."""
    return text.replace("    option (rule).level = 3;\n\n", "    option (rule).level = 3;\n  \n")


def test_a_text_in_confluents_layout_stays_as_it_is() -> None:
    text = with_blanks_on_blank_lines(TEXT)
    assert print_file(read(text)) == text


def test_comments_and_layout_do_not_survive() -> None:
    text = "/* a */message  A{ // b\nint32 x=1;}"
    assert print_file(read(text)) == "\nmessage A {\n  int32 x = 1;\n}\n"


def test_parts_have_one_order() -> None:
    text = "enum E { Z = 0; } message A { message B {} enum F { Y = 0; } oneof o { int32 y = 2; } int32 x = 1; }"  # noqa: E501
    printed = print_file(read(text))
    places = [printed.index(part) for part in ("x = 1", "oneof", "message B", "enum F", "enum E")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("content", "written"),
    [
        (b"a\"b'c\\", r'"a\"b\'c\\"'),
        (b"\a\b\f\n\r\t\v\0\x1f\x7f", r'"\a\b\f\n\r\t\v\000\037\177"'),
        ("é😀".encode(), '"é😀"'),
        (b"\xff\xfe5", r'"\377\3765"'),
    ],
)
def test_strings_are_escaped(content: bytes, written: str) -> None:
    assert print_file(File(options=(Option("x", Quoted(content)),))) == f"\noption x = {written};\n"
