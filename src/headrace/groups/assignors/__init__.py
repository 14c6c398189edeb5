"""Server-side assignors (KIP-848): who of a group's members shall have which partitions.

An assignor is a pure function of what members ask for, what they were to have so far, and what
topics there are. It says where the group shall get to; `groups/reconciliation.py` says how.
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
"""By the name that members and `group.consumer.assignors` call them."""

__all__ = [
    "ASSIGNORS",
    "Assign",
    "Assignment",
    "MemberSpecification",
    "TopicSpecification",
    "assign_ranges",
    "assign_uniformly",
]
