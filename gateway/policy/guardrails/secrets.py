"""What in a text is a credential? Keys by the marks that their makers put on them, tokens and private keys by their form.

What only looks random is none: hashes, ids and data look so too.
"""
import re
from typing import Final

from gateway.policy.guardrails.find import Kind, Span, matching

MAX_PEM: Final = 16_384
_EDGE: Final = r"(?<![A-Za-z0-9_\-])"

# Prefixes as documented by the makers: OpenAI and kin, Anthropic, Stripe, GitHub, GitLab, Google, AWS, Slack, Hugging Face, Groq,
# npm, PyPI, SendGrid, DigitalOcean, xAI, Perplexity, NVIDIA, Replicate, Shopify, age, webhooks, this gateway.
_KEYS: Final = _EDGE + "(?:" + "|".join((
    r"(?:sk|rk|pk)[-_](?:live_|test_|proj-|ant-|or-|svcacct-)?[A-Za-z0-9][A-Za-z0-9_\-]{18,300}",
    r"gh[pousr]_[A-Za-z0-9]{30,255}", r"github_pat_[A-Za-z0-9_]{40,255}", r"glpat-[A-Za-z0-9_\-]{20,64}",
    r"AIza[A-Za-z0-9_\-]{35}", r"ya29\.[A-Za-z0-9_\-]{20,500}", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
    r"xox[abeprs]-[A-Za-z0-9\-]{10,255}", r"xapp-[A-Za-z0-9\-]{10,255}", r"hf_[A-Za-z0-9]{30,64}", r"gsk_[A-Za-z0-9]{30,80}",
    r"npm_[A-Za-z0-9]{36}", r"pypi-[A-Za-z0-9_\-]{50,300}", r"SG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{30,64}",
    r"do[opr]_v1_[a-f0-9]{64}", r"xai-[A-Za-z0-9]{40,120}", r"pplx-[A-Za-z0-9]{30,80}", r"nvapi-[A-Za-z0-9_\-]{40,100}",
    r"r8_[A-Za-z0-9]{30,60}", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}",
    r"whsec_[A-Za-z0-9+/=]{20,100}", r"gw-[A-Za-z0-9_\-]{32,100}",
)) + ")"
_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")


def private_key(text: str, pos: int) -> Span | None:
    """From its first line to its last; one that is cut is one as far as it goes."""
    begin = _BEGIN.search(text, pos)
    if begin is None:
        return None
    end = _END.search(text, begin.end(), begin.end() + MAX_PEM)
    return begin.start(), end.end() if end is not None else min(len(text), begin.end() + MAX_PEM)


KINDS: Final = (
    Kind("PRIVATE_KEY", "private keys", private_key),
    Kind("JWT", "tokens", matching(_EDGE + r"eyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,4000}\.[A-Za-z0-9_\-]{8,2000}")),
    Kind("API_KEY", "keys", matching(_KEYS)),
)
