"""The description of the surfaces lists every door that does something."""
from gateway.surfaces.openapi import BODIES, FORMS, document
from gateway.surfaces.routes import ROUTES, find
from tests.conftest import client_key
from tests.talk import ask


def test_every_described_path_leads_to_a_door():
    told = document(ROUTES, "1")
    for path, methods in told["paths"].items():
        doors = find(path)
        assert {method.upper() for method in methods} <= set(doors), path
    names = [operation["operationId"] for methods in told["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_every_door_that_takes_json_says_what_it_wants():
    told = document(ROUTES, "1")
    without = {path for path, methods in told["paths"].items() if "post" in methods and "requestBody" not in methods["post"]}
    assert without == {"/v1/responses/{id}/cancel"}
    assert set(BODIES) | set(FORMS) <= set(told["paths"])


async def test_it_is_read_without_a_key(gateway):
    base_url = await gateway(client_key())
    answer = await ask(base_url, path="/v1/openapi.json", method="GET", headers={})
    assert answer.status == 200 and answer.json["openapi"] == "3.1.0" and "/v1/chat/completions" in answer.json["paths"]
