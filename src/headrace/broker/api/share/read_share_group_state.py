"""ReadShareGroupState v0: states for a partition's new leader, which fence its predecessor."""

from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.broker.api.share.states import BROKER_RIGHTS, serve_each
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import read_share_group_state as schema
from headrace.security.acls import Operation
from headrace.shares.state import SharePartitionState


@api(ApiKey.READ_SHARE_GROUP_STATE, versions=range(1), rights=BROKER_RIGHTS)
async def read_share_group_state(
    request: schema.ReadShareGroupStateRequest, call: Call
) -> schema.ReadShareGroupStateResponse:
    call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    read = call.broker.share_coordinator.read
    results = await serve_each(
        request,
        schema.ReadStateResult,
        schema.PartitionResult,
        lambda key, asked: read(key, asked.leader_epoch),
        _fields,
    )
    return schema.ReadShareGroupStateResponse(results=results)


def _fields(state: SharePartitionState) -> dict[str, Any]:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [schema.StateBatch(*one) for one in state.batches],
    }
