"""Which models want back what they said, and which clients drop? Facts by model name, each with its reason and source."""
import re
from functools import lru_cache
from typing import Final

import msgspec


class Needs(msgspec.Struct, frozen=True):
    """``signatures`` of calls; ``reasoning`` of turns that called tools; ``always``: of plain turns too."""
    signatures: bool = False
    reasoning: bool = False
    always: bool = False


class Row(msgspec.Struct, frozen=True):
    """``names`` is searched in the model's id, in lower case and without what stands before its last slash."""
    names: re.Pattern[str]
    always: bool
    why: str
    source: str


REASONING: Final[tuple[Row, ...]] = (
    Row(re.compile(r"deepseek-v(?:3\.[2-9]|[4-9])"), True,
        "400 without the reasoning of turns that called tools; V4 of plain turns too",
        "https://api-docs.deepseek.com/guides/thinking_mode"),
    Row(re.compile(r"kimi-(?:k[2-9]|for-coding|thinking)|^k2p\d"), False,
        "400: reasoning_content is missing in assistant tool call message",
        "https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model"),
    Row(re.compile(r"mimo-v\d"), True, "400 unless reasoning_content is passed back",
        "https://platform.xiaomimimo.com/docs/zh-CN/usage-guide/passing-back-reasoning_content"),
    Row(re.compile(r"glm-(?:4\.[5-9]|[5-9]|.*think)"), False, "thinks between calls and goes on from what it thought",
        "https://docs.z.ai/guides/capabilities/thinking-mode"),
    Row(re.compile(r"qwq|qwen.*think"), False, "thinks between calls and goes on from what it thought",
        "https://help.aliyun.com/zh/model-studio/deep-thinking"),
)
# DeepSeek's R1 refuses what the others demand: https://api-docs.deepseek.com/guides/reasoning_model
NEVER: Final = re.compile(r"deepseek-(?:r1|reasoner)")
# Gemini, also behind Google's chat endpoint. https://ai.google.dev/gemini-api/docs/thought-signatures
SIGNED: Final = re.compile(r"gemini-(?:2\.5|[3-9])|gemini-(?:pro|flash).*latest")


@lru_cache(maxsize=4096)
def needs_of(wire: str, model: str) -> Needs | None:
    """None for nearly all models: nothing is remembered for them, nothing looked up."""
    if wire == "gemini":
        return Needs(signatures=True)
    if wire != "openai-chat":
        return None                                  # other formats have a place for thinking, and clients keep what is there
    name = bare(model)
    row = None if NEVER.search(name) else next((row for row in REASONING if row.names.search(name)), None)
    if row is not None:
        return Needs(reasoning=True, always=row.always)
    return Needs(signatures=True) if SIGNED.search(name) else None


def bare(model: str) -> str:
    """The same model has the same name, whoever serves it."""
    return model.rpartition("/")[2].partition(":")[0].lower()
