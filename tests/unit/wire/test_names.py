"""Names of tools that another format takes are spelled anew, and found back."""
from gateway.core import request as rq
from gateway.core.request import Conversation, Request, Tool, ToolChoice
from gateway.wire import WIRES
from gateway.wire.base import Outbound
from gateway.wire.names import back, respelled, spelled


def test_fine_names_stay():
    assert spelled(["get_weather", "a-b", "x" * 64], 64) == {}


def test_signs_and_length_are_mended_and_no_two_are_alike():
    found = spelled(["a.b", "a_b", "a/b", "", "é" * 3, "x" * 70, "x" * 71], 64)
    assert found["a.b"] == "a_b_2" and found["a/b"] == "a_b_3" and "a_b" not in found
    assert len(set(found.values()) | {"a_b"}) == 7 and all(1 <= len(name) <= 64 for name in found.values())


def talk():
    return Conversation(
        [rq.Message("assistant", [rq.Call("1", "ns.run", "{}"), rq.Call("2", "gone:tool", "{}")]),
         rq.Message("tool", [rq.Result("1", [rq.Text("ok")], "ns.run")])],
        tools=[Tool("ns.run", "d"), Tool("ok")], tool_choice=ToolChoice("named", "ns.run"))


def test_a_dialogue_is_renamed_everywhere_and_the_way_back_is_known():
    made = respelled(talk(), "openai-chat")
    assert [tool.name for tool in made.tools] == ["ns_run", "ok"] and made.tool_choice.name == "ns_run"
    assert [part.name for part in made.messages[0].parts] == ["ns_run", "gone_tool"] and made.messages[1].parts[0].name == "ns_run"
    assert talk().tools[0].name == "ns.run"
    asked = Request(wire="gemini", raw=b"", body=None, model="m", stream=True, tools={"ns.run": None, "ok": None}, conversation=talk())
    assert back("openai-chat", asked) == back("anthropic", asked) == {"ns_run": "ns.run"}
    assert back("gemini", asked) == {}


def test_a_dialogue_with_fine_names_is_the_very_same():
    fine = Conversation([rq.Message("user", [rq.Text("x")])], tools=[Tool("ok")])
    assert respelled(fine, "anthropic") is fine


def test_what_a_provider_runs_itself_is_not_offered_to_chat():
    asked = Request(wire="anthropic", raw=b"", body=None, model="m", stream=False, conversation=Conversation(
        [rq.Message("user", [rq.Text("x")])], tools=[Tool("bash", kind="server", payload={"type": "code_execution_20260120"})],
        tool_choice=ToolChoice("named", "bash")))
    body = WIRES["openai-chat"].build_request(asked, Outbound(model="m", provider="p", stream=False))
    assert b"tool" not in body
