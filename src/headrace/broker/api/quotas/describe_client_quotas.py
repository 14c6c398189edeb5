"""DescribeClientQuotas v0-1: find quotas of users, client ids and addresses (KIP-546)."""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from headrace.quotas.searching import Condition, matching
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)


def _refuse(
    request: DescribeClientQuotasRequest, error: KafkaError, version: int
) -> DescribeClientQuotasResponse:
    """Answer an error without a list, which tools distinguish from an empty one."""
    return DescribeClientQuotasResponse(0, error.code, str(error) or None, None)


@api(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=range(2), refuse=_refuse, rights=_RIGHTS)
def describe_client_quotas(
    request: DescribeClientQuotasRequest, call: Call
) -> DescribeClientQuotasResponse:
    call.access.check_on_cluster(Operation.DESCRIBE_CONFIGS)
    conditions = [
        Condition(one.entity_type, one.match_type, one.match) for one in request.components
    ]
    entries = [
        EntryData(
            [EntityData(kind, name) for kind, name in entity],
            [ValueData(key, value) for key, value in sorted(values.items())],
        )
        for entity, values in matching(
            call.broker.image.client_quotas, conditions, strict=request.strict
        )
    ]
    return DescribeClientQuotasResponse(error_message=None, entries=entries)
