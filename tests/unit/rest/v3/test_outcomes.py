"""What became of each of several partitions."""

import msgspec
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
def test_a_partition_has_the_code_that_its_error_has_alone(
    found: PartitionOutcome, code: int
) -> None:
    assert shown(found).error_code == code


def test_a_reason_is_told_with_its_partition() -> None:
    found = PartitionOutcome("t", 3, "INVALID_REPLICA_ASSIGNMENT", "no such broker")
    assert shown(found) == OutcomeData("t", 3, 40002, "no such broker")


def test_several_are_answered_one_by_one_with_a_status_for_none_of_them() -> None:
    answer = each(
        [PartitionOutcome("t", 0), PartitionOutcome("t", 1, "NO_REASSIGNMENT_IN_PROGRESS")]
    )
    data = msgspec.json.decode(answer.body)["data"]
    assert (answer.status_code, [one["error_code"] for one in data]) == (207, [200, 404])


def test_one_alone_is_raised_as_what_it_is() -> None:
    check_one([PartitionOutcome("t", 0)])
    with pytest.raises(NoReassignmentInProgress, match="nothing moves"):
        check_one([PartitionOutcome("t", 0, "NO_REASSIGNMENT_IN_PROGRESS", "nothing moves")])
