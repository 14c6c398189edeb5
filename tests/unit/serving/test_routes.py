"""The application of a served lake."""

import httpx2
import pytest

from headrace.serving.routes import application
from tests.builders.lake_services import ServedLake


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("http://lake", 200)]
)
async def test_only_our_own_pages_may_post_a_query(
    served: ServedLake, origin: str, status: int
) -> None:
    async with served.service.running():
        transport = httpx2.ASGITransport(app=application(served.service))
        async with httpx2.AsyncClient(transport=transport, base_url="http://lake") as http:
            answer = await http.post("/query", content="SELECT 1", headers={"Origin": origin})
    assert answer.status_code == status
