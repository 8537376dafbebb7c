"""A request leaves nothing behind that only the garbage collector could find: with large prompts that would be most of the memory."""
import gc

import pytest

from benchmarks.micro.bench_request import prepared


@pytest.mark.parametrize("mode", ["whole answer", "20 in one", "20 one by one"])
async def test_an_answered_request_is_freed_at_once(mode):
    once = await prepared(mode)
    await once()
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            await once()
        assert gc.collect() < 10                 # not even one object a request
    finally:
        gc.enable()
