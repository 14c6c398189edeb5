"""The text of the first voters, which all nodes of a new cluster share."""

import pytest

from headrace.errors import InvalidConfig
from headrace.metadata.log.first_voters import first_voters_text, parse_first_voters

ONE = "1@a.example:9093:Node1AAAAAAAAAAAAAAAAA"
TWO = "2@[::1]:9094:Node2AAAAAAAAAAAAAAAAA"


def test_the_text_round_trips() -> None:
    voters = parse_first_voters(f"{ONE},{TWO}", "CONTROLLER")
    assert [voter.node_id for voter in voters] == [1, 2]
    assert voters[1].endpoint.host == "::1"
    assert voters[0].endpoint.name == "CONTROLLER"
    assert first_voters_text(voters) == f"{ONE},{TWO}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one"),
        ("1@a:9093", "random-uuid"),
        ("x@a:9093:Node1AAAAAAAAAAAAAAAAA", "random-uuid"),
        ("1@a:Node1AAAAAAAAAAAAAAAAA", "random-uuid"),
        ("1@a:9093:tooshort", "random-uuid"),
        ("1@a:9093:AAAAAAAAAAAAAAAAAAAAAQ", "random-uuid"),
        (f"{ONE},1@b:9093:Node2AAAAAAAAAAAAAAAAA", "name node 1 more than once"),
        (f"{ONE},2@b:9093:Node1AAAAAAAAAAAAAAAAA", "more than once"),
    ],
)
def test_malformed_voters_are_refused_with_advice(text: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_first_voters(text, "CONTROLLER")
    assert message in str(caught.value)
