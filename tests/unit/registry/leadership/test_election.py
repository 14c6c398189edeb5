"""The election of a leader, in the protocol of Confluent's instances."""

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


def test_the_current_leader_is_elected_again() -> None:
    assert elect({"x": instance("b", leader=True), "y": instance("a")}).master == "x"


def test_the_smallest_url_wins_among_two_leaders() -> None:
    both = {"x": instance("b", leader=True), "y": instance("a", leader=True)}
    assert elect(both).master == "y"


def test_ineligible_instances_are_not_elected() -> None:
    members = {"x": instance("a", eligible=False, leader=True), "y": instance("b")}
    assert elect(members).master == "y"


def test_without_candidates_there_is_no_leader() -> None:
    assert elect({"x": instance("a", eligible=False)}) == Assignment()


def test_two_instances_at_one_address_are_an_error() -> None:
    assert elect({"x": instance("a"), "y": instance("a")}).error == DUPLICATE_URLS


def test_members_of_another_kind_are_refused() -> None:
    with pytest.raises(NotOfARegistry):
        decoded_identity(b"\x00\x01")
