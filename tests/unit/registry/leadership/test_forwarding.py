"""What a leader is told of a client's request."""

from headrace.registry.leadership.forwarding import forwardable_headers


def test_only_what_the_leader_needs_is_passed_on() -> None:
    given = {"content-type": "application/json", "cookie": "x", "authorization": "Bearer t"}
    assert forwardable_headers(given) == {
        "content-type": "application/json",
        "authorization": "Bearer t",
        "x-forward": "true",
    }
