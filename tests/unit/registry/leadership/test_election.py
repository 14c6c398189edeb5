"""Who leads, in the words that Confluent's instances use."""

import json

import pytest

from headrace.registry.leadership.election import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    NotOfARegistry,
    decoded_assignment,
    decoded_identity,
    elect,
)


def instance(host: str, *, eligible: bool = True, leader: bool = False) -> Identity:
    return Identity(host, 8081, eligible, leader=leader)


def test_an_identity_is_written_as_confluent_reads_it() -> None:
    assert json.loads(instance("a").encoded()) == {
        "host": "a",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "version": 1,
        "leader": False,
    }


def test_an_identity_of_an_older_instance_is_read() -> None:
    given = b'{"version":1,"host":"b","port":8081,"master_eligibility":true,"scheme":"http"}'
    assert decoded_identity(given) == instance("b")


def test_an_assignment_names_the_member_and_where_it_is() -> None:
    assert json.loads(elect({"m-1": instance("a")}).encoded()) == {
        "error": 0,
        "master": "m-1",
        "master_identity": json.loads(instance("a").encoded()),
        "version": 1,
    }


def test_an_assignment_by_confluent_is_read() -> None:
    given = (
        b'{"error":0,"master":"sr-1","master_identity":{"host":"b","port":8081,'
        b'"master_eligibility":true,"scheme":"https","version":1},"version":1}'
    )
    leader = decoded_assignment(given).master_identity
    assert leader is not None
    assert leader.url == "https://b:8081"


def test_the_smallest_url_leads() -> None:
    assert elect({"x": instance("b"), "y": instance("a")}).master == "y"


def test_who_leads_stays() -> None:
    assert elect({"x": instance("b", leader=True), "y": instance("a")}).master == "x"


def test_of_two_who_think_that_they_lead_the_smallest_url_does() -> None:
    both = {"x": instance("b", leader=True), "y": instance("a", leader=True)}
    assert elect(both).master == "y"


def test_who_may_not_lead_does_not() -> None:
    members = {"x": instance("a", eligible=False, leader=True), "y": instance("b")}
    assert elect(members).master == "y"


def test_nobody_leads_where_nobody_may() -> None:
    assert elect({"x": instance("a", eligible=False)}) == Assignment()


def test_two_at_one_place_are_told() -> None:
    assert elect({"x": instance("a"), "y": instance("a")}).error == DUPLICATE_URLS


def test_members_of_another_kind_are_refused() -> None:
    with pytest.raises(NotOfARegistry):
        decoded_identity(b"\x00\x01")
