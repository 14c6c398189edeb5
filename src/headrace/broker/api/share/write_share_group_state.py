"""WriteShareGroupState v0-1: the progress of delivery, from the leader of a share partition.

v1 adds the count of completed deliveries, which yields the lag.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.share.states import BROKER_RIGHTS, serve_each
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import write_share_group_state as schema
from headrace.security.acls import Operation
from headrace.shares.state import StateBatch, StateChange


@api(ApiKey.WRITE_SHARE_GROUP_STATE, versions=range(2), rights=BROKER_RIGHTS)
async def write_share_group_state(
    request: schema.WriteShareGroupStateRequest, call: Call
) -> schema.WriteShareGroupStateResponse:
    call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    write = call.broker.share_coordinator.write
    results = await serve_each(
        request,
        schema.WriteStateResult,
        schema.PartitionResult,
        lambda key, asked: write(key, _change(asked)),
    )
    return schema.WriteShareGroupStateResponse(results=results)


def _change(asked: schema.PartitionData) -> StateChange:
    return StateChange(
        asked.state_epoch,
        asked.leader_epoch,
        asked.start_offset,
        asked.delivery_complete_count,
        [
            StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
            for one in asked.state_batches
        ],
    )
