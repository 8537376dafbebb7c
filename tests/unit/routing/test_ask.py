"""What is a message about? Our words, and the operator's besides."""
from types import SimpleNamespace

import pytest

from gateway.pipeline.asking import ask
from gateway.pipeline.prepare import planned
from gateway.routing.ask import Intents, intent, task
from gateway.routing.resolve import resolve
from gateway.wire import WIRES
from tests.unit.config.files import PROVIDER


@pytest.mark.parametrize(("text", "own", "about"), [
    ("apply the Terraform plan file", {}, "reasoning"),
    ("apply the Terraform plan file", {"code": ["terraform"]}, "code"),
    ("a limerick about tea", {}, "simple"),
    ("a limerick about tea", {"creative": ["limerick"], "code": ["rick"]}, "creative"),
    ("c++ please", {"code": ["c++"]}, "code"),
    ("anything", {"code": []}, "simple"),
])
def test_words_of_the_operator_count_like_ours(text, own, about):
    assert intent(text, Intents.of(own)) == about


def test_the_task_follows_the_intent():
    assert task("my terraform", Intents.of({"code": ["terraform"]})) == "coding"
    assert task("my terraform") == "default"


@pytest.mark.parametrize(("enabled", "text"), [("true", "my terraform"), ("false", "")])
async def test_auto_goes_by_the_words_unless_they_are_not_to_be_looked_at(gateway, enabled, text):
    await gateway(PROVIDER.replace('["m"]', '["m", "n"]')
                  + f'[routing]\nstrategy = "auto"\n[routing.intents]\nenabled = {enabled}\ncode = ["terraform"]\n')
    ground = gateway.listener.desk.ground
    request = WIRES["openai-chat"].parse_request(b'{"model":"auto","messages":[{"role":"user","content":"my terraform"}]}')
    told = ask(planned(request, resolve("auto", ground.catalog), ground), "", SimpleNamespace(headers={}), ground)
    assert told.text == text
    assert task("my terraform", told.intents) == "coding"
