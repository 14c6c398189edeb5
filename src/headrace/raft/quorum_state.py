"""`quorum-state`: the file that a voter must not lose, besides its log.

It holds the epoch, and its leader or the candidate with this node's vote. The file is synced before
any message about it is sent. A node that restarts could otherwise vote twice, or lead an epoch a
second time.
"""

import msgspec

from headrace.errors import HeadraceError
from headrace.protocol.uuids import ZERO, Uuid, from_text, to_text
from headrace.runtime import files

FILE_NAME = "quorum-state"
NOBODY = -1


class CorruptQuorumState(HeadraceError):
    """A file that cannot be trusted: guessing an epoch could make two leaders of one epoch."""


class QuorumState(msgspec.Struct, frozen=True, kw_only=True):
    """An epoch, with its leader and the vote of this node.

    `static_voters` is set where the voters come from the configuration (kraft.version 0); the
    file then has an older form.
    """

    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO
    static_voters: tuple[int, ...] | None = None


class _Voter(msgspec.Struct, rename={"voter_id": "voterId"}):
    voter_id: int


class _Form0(msgspec.Struct, rename="camel"):
    cluster_id: str = ""
    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    applied_offset: int = 0
    current_voters: list[_Voter] = []
    data_version: int = msgspec.field(default=0, name="data_version")


class _Form1(msgspec.Struct, rename="camel"):
    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: str = to_text(ZERO)
    data_version: int = msgspec.field(default=1, name="data_version")


class _Version(msgspec.Struct):
    data_version: int


def encode_quorum_state(state: QuorumState) -> bytes:
    if state.static_voters is not None:
        return msgspec.json.encode(
            _Form0(
                leader_id=state.leader_id,
                leader_epoch=state.leader_epoch,
                voted_id=state.voted_id,
                current_voters=[_Voter(voter) for voter in state.static_voters],
            )
        )
    return msgspec.json.encode(
        _Form1(
            state.leader_id,
            state.leader_epoch,
            state.voted_id,
            to_text(state.voted_directory_id),
        )
    )


def decode_quorum_state(content: bytes) -> QuorumState:
    try:
        version = msgspec.json.decode(content, type=_Version).data_version
        if version == 0:
            old = msgspec.json.decode(content, type=_Form0)
            return QuorumState(
                leader_id=old.leader_id,
                leader_epoch=old.leader_epoch,
                voted_id=old.voted_id,
                static_voters=tuple(voter.voter_id for voter in old.current_voters),
            )
        new = msgspec.json.decode(content, type=_Form1)
        if version != 1:
            raise CorruptQuorumState(f"data_version {version} is not known")
        return QuorumState(
            leader_id=new.leader_id,
            leader_epoch=new.leader_epoch,
            voted_id=new.voted_id,
            voted_directory_id=from_text(new.voted_directory_id),
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise CorruptQuorumState(f"{FILE_NAME} cannot be read: {error}") from error


def read_quorum_state(directory: str) -> QuorumState:
    """Read the state in the directory of the metadata log; epoch 0 if the file is missing."""
    try:
        return decode_quorum_state(files.read(f"{directory}/{FILE_NAME}"))
    except FileNotFoundError:
        return QuorumState()


def write_quorum_state(directory: str, state: QuorumState) -> None:
    """Write the state; it is on disk when this returns."""
    files.replace_file(f"{directory}/{FILE_NAME}", encode_quorum_state(state))
