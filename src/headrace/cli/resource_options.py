"""Options that name the resources of rules: `--topic`, `--group` and others."""

from collections.abc import Callable
from typing import Any

import click
import msgspec

from headrace.security.acls import ResourceType
from headrace.security.principals import USER

OPTIONS = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.CLUSTER: "--cluster",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}
"""The option for each type of resource."""

_NAMES = (
    (ResourceType.TOPIC, "topics", "A topic"),
    (ResourceType.GROUP, "groups", "A group"),
    (ResourceType.TRANSACTIONAL_ID, "transactional_ids", "A transactional id"),
    (ResourceType.DELEGATION_TOKEN, "delegation_tokens", "A delegation token, by its id"),
    (ResourceType.USER, "user_principals", "A user whose tokens others may create"),
)


class NamedResources(msgspec.Struct, frozen=True):
    """The resources that a command line names, except the cluster."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    delegation_tokens: tuple[str, ...] = ()
    user_principals: tuple[str, ...] = ()

    @property
    def names(self) -> dict[ResourceType, tuple[str, ...]]:
        """The names by type of resource."""
        return {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
            ResourceType.DELEGATION_TOKEN: self.delegation_tokens,
            ResourceType.USER: tuple(map(principal_named, self.user_principals)),
        }


def name_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options with the names of the fields of `NamedResources`."""
    for kind, field, what in reversed(_NAMES):
        command = click.option(
            OPTIONS[kind], field, metavar="NAME", multiple=True, help=f"{what}; may be repeated."
        )(command)
    return command


def principal_named(text: str) -> str:
    """Return a principal; a name without a type is a user."""
    return text if ":" in text else f"{USER}:{text}"
