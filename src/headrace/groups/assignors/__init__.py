"""Server-side assignors (KIP-848), which distribute partitions among the members of a group.

An assignor is a pure function of the members' subscriptions, their previous targets and the topics.
It returns targets; `groups/consumer/reconciliation.py` moves each member to its target in steps.
"""

from headrace.groups.assignors.range import assign_ranges
from headrace.groups.assignors.specification import (
    Assign,
    Assignment,
    MemberSpecification,
    TopicSpecification,
)
from headrace.groups.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assign] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The assignors by their names in `group.consumer.assignors`."""

__all__ = [
    "ASSIGNORS",
    "Assign",
    "Assignment",
    "MemberSpecification",
    "TopicSpecification",
    "assign_ranges",
    "assign_uniformly",
]
