"""ReadShareGroupStateSummary v0-1: the positions of share partitions, without their batches.

v1 adds the count of completed deliveries, which yields the lag.
"""

from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.broker.api.share.states import BROKER_RIGHTS, serve_each
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import read_share_group_state_summary as schema
from headrace.security.acls import Operation
from headrace.shares.state import SharePartitionState


@api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=range(2), rights=BROKER_RIGHTS)
async def read_share_group_state_summary(
    request: schema.ReadShareGroupStateSummaryRequest, call: Call
) -> schema.ReadShareGroupStateSummaryResponse:
    call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    summary = call.broker.share_coordinator.summary
    results = await serve_each(
        request,
        schema.ReadStateSummaryResult,
        schema.PartitionResult,
        lambda key, asked: summary(key),
        _fields,
    )
    return schema.ReadShareGroupStateSummaryResponse(results=results)


def _fields(state: SharePartitionState) -> dict[str, Any]:
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete_count,
    }
