"""Files without extensions, or without custom options."""

from headrace.serdes.protobuf.printing import print_file
from headrace.serdes.protobuf.pruning import uses_meta, without_custom_options, without_extensions
from headrace.serdes.protobuf.reading import read

TEXT = """
option (a) = 1;
option java_package = "p";
message A {
  option (b) = 2;
  option (confluent.message_meta) = { doc: "d" };
  int32 x = 1 [(c) = 3, deprecated = true];
  oneof o { option (d) = 4; int32 y = 2 [(c) = 3]; group G = 3 { optional int32 z = 1 [(c) = 1]; } }
  extensions 10 to 20 [(h) = 1];
  extend A { optional int32 e = 10 [(c) = 5]; }
  enum E { option (i) = 1; Z = 0 [(j) = 1]; }
}
extend A { optional int32 f = 11; }
service S { option (k) = 1; rpc R (A) returns (A) { option (l) = 1; } }
"""


def test_without_extensions_nothing_extends_and_only_known_options_are_left() -> None:
    printed = print_file(without_extensions(read(TEXT)))
    assert "exten" not in printed
    assert printed.count("(") - 2 == printed.count("(confluent.") == 1  # Two are of the call.


def test_without_custom_options_the_extensions_stay() -> None:
    printed = print_file(without_custom_options(read(TEXT)))
    assert printed.count("extend A") == 2
    assert "extensions 10 to 20;" in printed


def test_confluents_own_options_are_noticed() -> None:
    assert uses_meta(read(TEXT))
    assert not uses_meta(read("message A { option (b) = 2; }"))
