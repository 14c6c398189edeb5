"""Outcomes of changes to several partitions."""

import pytest

from headrace.client.descriptions import PartitionOutcome
from headrace.errors import NoReassignmentInProgress
from headrace.rest.v3.outcomes import OutcomeData, check_one, each, shown


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (PartitionOutcome("t", 3), 200),
        (PartitionOutcome("t", 3, "INVALID_REPLICA_ASSIGNMENT", "no such broker"), 40002),
        (PartitionOutcome("t", 3, "NO_REASSIGNMENT_IN_PROGRESS"), 404),
        (PartitionOutcome("t", 3, "ELECTION_NOT_NEEDED", "it leads"), 40002),
        (PartitionOutcome("t", 3, "UNKNOWN_TOPIC_OR_PARTITION"), 40403),
        (PartitionOutcome("t", 3, "PREFERRED_LEADER_NOT_AVAILABLE"), 50003),
    ],
)
def test_a_partition_has_the_code_of_its_own_error(found: PartitionOutcome, code: int) -> None:
    assert shown(found).error_code == code


def test_a_reason_is_returned_with_its_partition() -> None:
    found = PartitionOutcome("t", 3, "INVALID_REPLICA_ASSIGNMENT", "no such broker")
    assert shown(found) == OutcomeData("t", 3, 40002, "no such broker")


def test_each_partition_has_its_own_outcome() -> None:
    answer = each(
        [PartitionOutcome("t", 0), PartitionOutcome("t", 1, "NO_REASSIGNMENT_IN_PROGRESS")]
    )
    assert [one.error_code for one in answer.data] == [200, 404]


def test_the_error_of_a_single_partition_is_raised() -> None:
    check_one([PartitionOutcome("t", 0)])
    with pytest.raises(NoReassignmentInProgress, match="nothing moves"):
        check_one([PartitionOutcome("t", 0, "NO_REASSIGNMENT_IN_PROGRESS", "nothing moves")])
