"""AlterConfigs v0-2: replace all configs of a resource.

The older of two APIs: configs that the request does not name return to their defaults, so two tools
undo each other's changes. Clients should send IncrementalAlterConfigs.
"""

from headrace.broker.api.configs.altering import ALTERING_RIGHTS, alter_each
from headrace.broker.api.registry import Call, api
from headrace.errors import InvalidRequest, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import alter_configs as schema


@api(ApiKey.ALTER_CONFIGS, versions=range(3), rights=ALTERING_RIGHTS)
async def alter_configs(
    request: schema.AlterConfigsRequest, call: Call
) -> schema.AlterConfigsResponse:
    rows = await alter_each(request, call, schema.AlterConfigsResourceResponse, _refuse_logger)
    return schema.AlterConfigsResponse(responses=rows)


def _refuse_logger(resource: schema.AlterConfigsResource) -> KafkaError:
    return InvalidRequest("the levels of loggers are altered incrementally only")
