"""The first voters of a quorum as a text that every node is formatted with.

It is kafka-storage's form: `1@host:9093:directory,2@host:9093:directory,...`, where a directory is
the 22 characters of a UUID.
"""

from collections.abc import Iterable

from headrace.errors import InvalidConfig
from headrace.metadata.image import Endpoint
from headrace.metadata.log.formatting import Voter
from headrace.protocol.uuids import Uuid, from_text, is_reserved, to_text
from headrace.runtime.addresses import address_text
from headrace.settings.quorum_addresses import parse_address


def parse_first_voters(text: str, listener: str) -> tuple[Voter, ...]:
    """Return the voters; their endpoints belong to the controllers' listener of this name."""
    voters = tuple(_voter(part.strip(), listener) for part in text.split(",") if part.strip())
    if not voters:
        raise InvalidConfig("name at least one initial controller, as id@host:port:directory")
    for what, values in (
        ("node", [str(voter.node_id) for voter in voters]),
        ("directory", [to_text(voter.directory_id) for voter in voters]),
    ):
        if twice := next((one for one in values if values.count(one) > 1), None):
            raise InvalidConfig(f"the initial controllers name {what} {twice} more than once")
    return voters


def first_voters_text(voters: Iterable[Voter]) -> str:
    """Return the text that `parse_first_voters` reads."""
    return ",".join(
        f"{voter.node_id}@{address_text(voter.endpoint.host, voter.endpoint.port)}"
        f":{to_text(voter.directory_id)}"
        for voter in voters
    )


def _voter(text: str, listener: str) -> Voter:
    node_id, _, rest = text.partition("@")
    address_part, _, directory = rest.rpartition(":")
    address = parse_address(address_part)
    directory_id = _directory_id(directory)
    is_number = node_id.isascii() and node_id.isdecimal()
    if not is_number or address is None or directory_id is None:
        raise InvalidConfig(
            f"{text!r} is not an initial controller; write it as 1@host:9093:directory, with a "
            "directory id from: headrace format random-uuid"
        )
    return Voter(int(node_id), directory_id, Endpoint(listener, *address))


def _directory_id(text: str) -> Uuid | None:
    try:
        found = from_text(text)
    except ValueError:
        return None
    return None if is_reserved(found) else found
