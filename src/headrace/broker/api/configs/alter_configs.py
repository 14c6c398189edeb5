"""AlterConfigs v0-2: replace all configs of a resource by those given.

The elder of two: what the request does not mention goes back to its default, so two tools that
do not know of each other undo each other's work. IncrementalAlterConfigs is the better one.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.configs.config_changes import sort_out
from headrace.broker.configs.config_layers import rules_of
from headrace.controller import configs
from headrace.errors import InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def _refuse(request: AlterConfigsRequest, error: KafkaError, version: int) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[_result(one, error) for one in request.resources])


@api(ApiKey.ALTER_CONFIGS, versions=range(3), refuse=_refuse)
async def alter_configs(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    asked = sort_out(request.resources, call.broker.node_id)
    errors: dict[int, KafkaError | None] = dict(asked.refused)
    for place in asked.loggers:
        errors[place] = InvalidRequest("the levels of loggers are altered incrementally only")
    if asked.stored:
        stored, rules = list(asked.stored.values()), rules_of(call.broker)
        results = await call.broker.controller.submit(
            lambda image: configs.alter_configs(
                image, stored, rules, validate_only=request.validate_only
            )
        )
        errors |= dict(zip(asked.stored, (result.error for result in results), strict=True))
    return AlterConfigsResponse(
        responses=[_result(one, errors[place]) for place, one in enumerate(request.resources)]
    )


def _result(
    resource: AlterConfigsResource, error: KafkaError | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
