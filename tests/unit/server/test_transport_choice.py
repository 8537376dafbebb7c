"""Which client asks a provider? The gateway's own, unless its table says otherwise; nothing else is accepted there."""
import pytest

from gateway.config.load import ConfigError, loads
from gateway.routing.resolve import resolve
from gateway.server import compose
from gateway.upstream.aiohttp_transport import AiohttpTransport
from gateway.upstream.h1.transport import H1Transport

TABLE = '[store]\nurl = "memory:"\n[[providers]]\nid = "up"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m"]\n'


@pytest.mark.parametrize(("line", "kind"), [("", H1Transport), ('transport = ""', H1Transport), ('transport = "fast"', H1Transport),
                                            ('transport = "aiohttp"', AiohttpTransport)])
async def test_requests_and_listings_go_by_the_same_client(line: str, kind: type) -> None:
    desk, parts = compose.build(loads(TABLE + line, {}))
    (target,) = resolve("up/m", desk.ground.catalog).targets
    lane = desk.ground.lane(target.candidates[0])
    assert type(lane.transport) is kind
    assert type(parts.means.door(target.provider)) is kind
    await compose.dissolve(parts)


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        loads(TABLE + 'transport = "quic"', {})
    assert caught.value.problems[0][0] == "providers[0].transport"
