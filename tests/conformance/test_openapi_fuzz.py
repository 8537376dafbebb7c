"""Whatever the descriptions allow, and what they do not, is answered: schemathesis finds no 500 in the operator's API or the surfaces."""
import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ask

schemathesis = pytest.importorskip("schemathesis")

ADMIN_KEY = "adm-0123456789abcdef"
EXAMPLES = 4
ENDLESS = {"/admin/api/logs/tail"}               # a tail has no end to wait for

pytestmark = pytest.mark.timeout(240)


def swept(told: dict[str, Any], base_url: str, headers: dict[str, str]) -> Counter[int]:
    """Some cases of every operation, good and bad ones; how often each status came. Raises AssertionError on a 500."""
    seen: Counter[int] = Counter()
    schema = schemathesis.openapi.from_dict(told)
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in ENDLESS:
            continue
        refusable = len(operation.query) or len(operation.body)      # any text is a good segment of a path
        for mode in modes[:None if refusable else 1]:
            strategy = operation.as_strategy(generation_mode=mode)

            @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                      suppress_health_check=list(HealthCheck))
            @given(case=strategy)
            def one(case: Any) -> None:
                answer = case.call(base_url=base_url, headers=headers, timeout=20)
                seen[answer.status_code] += 1
                assert answer.status_code != 500, f"{case.method} {case.formatted_path}: {answer.text[:300]}"
            try:
                one()
            except Unsatisfiable:                # an operation without parameters has no bad case
                continue
    return seen


def known(operation: dict[str, Any]) -> None:
    """Names of models are those that are there: else every case ends at its name."""
    for parameter in operation["parameters"]:
        if parameter["name"] == "model":
            parameter["schema"] = {"enum": ["m", "auto"]}
    for body in operation.get("requestBody", {"content": {}})["content"].values():
        if "model" in body["schema"]["properties"]:
            body["schema"]["properties"]["model"] = {"enum": ["m", "auto", "nobody"]}


async def test_the_operator_s_api_has_no_500(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(f'[admin]\nkey = "{ADMIN_KEY}"\n[store]\nurl = "memory:"\n' + client_key() + provider(up, "up"))
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    told = (await ask(base_url, path="/admin/api/openapi.json", method="GET", headers=headers)).json
    seen = await asyncio.to_thread(swept, told, base_url, headers)
    assert seen[200] > 30 and seen[400] > 30, seen


async def test_the_surfaces_have_no_500(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway('[ollama]\nmode = "loopback"\n[store]\nurl = "memory:"\n' + client_key() + provider(up, "up"))
    told = (await ask(base_url, path="/v1/openapi.json", method="GET")).json
    told["paths"] = {path: methods for path, methods in told["paths"].items() if not path.startswith("/v1/models/{model}:")}   # as /v1beta
    for methods in told["paths"].values():
        for operation in methods.values():
            known(operation)
    seen = await asyncio.to_thread(swept, told, base_url, {"Authorization": "Bearer gw-test-key"})
    assert seen[200] > 10 and seen[400] > 20, seen
