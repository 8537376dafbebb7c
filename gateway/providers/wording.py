"""How do providers say it? One row per meaning: the codes that machines write and the words that people write for it.

Every row has been seen; where a phrase is ambiguous the row is narrow, for a wrong ``rejected`` costs the caller an answer and
a wrong ``auth`` costs the operator a key. Words match on word boundaries, in the lower-cased message.
"""
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import msgspec

from gateway.providers.errorbody import Words

# Of twenty patterns most are never needed, and all of them are a fiftieth of a start.
_pattern = cache(re.compile)


class Rule(msgspec.Struct, frozen=True):
    """``unless`` are codes that rule it out; ``pieces`` is looked for inside codes (Google's quota ids)."""
    kind: str
    codes: frozenset[str]
    words: str = ""
    unless: frozenset[str] = frozenset()
    pieces: str = ""

    def matches(self, said: Words) -> bool:
        if self.unless and self.unless & said.codes:
            return False
        if self.codes & said.codes:
            return True
        if self.pieces and any(_pattern(self.pieces).search(code) for code in said.codes):
            return True
        return bool(self.words) and _pattern(self.words).search(said.lower) is not None


def _rule(kind: str, codes: str, *words: str, unless: str = "", pieces: str = "") -> Rule:
    return Rule(kind, frozenset(codes.split()), "|".join(words), frozenset(unless.split()), pieces)


_KEY = r"(?:api|access|subscription|auth(?:entication)?)[ _-]?(?:key|token)s?"

RULES: Final[dict[str, Rule]] = {
    # Google says it with 400, xAI too; Bedrock with 403.
    "auth": _rule(
        "auth", "invalid_api_key api_key_invalid invalid_authentication authentication_error unauthenticated invalid_token "
                "expired_token expiredtokenexception unrecognizedclientexception invalid_auth api_key_expired "
                "incorrect_api_key missing_api_key account_deactivated_key",
        rf"\b(?:incorrect|invalid|expired|missing|wrong|malformed|revoked|unknown|no|bad) (?:x-)?{_KEY}\b",
        rf"\b{_KEY}\b(?: [`'\"(*\w.-]+)?(?: provided)?(?: (?:is|was|has been|has))? ?(?:not valid|invalid|expired|incorrect|missing"
        r"|revoked|not found|malformed|required)\b",
        r"\bauthentication fail(?:ed|s|ure)\b", r"\bcould not (?:parse|validate|verify) your (?:authentication|api|credentials)",
        r"\bsecurity token\b.{0,40}\b(?:expired|invalid)\b", r"\binvalid (?:authentication )?credentials\b",
        r"\bfailed to authenticate\b|\bnot authenticated\b"),
    "credits": _rule(
        "out_of_credits", "insufficient_quota insufficient_user_quota insufficient_credits insufficient_balance "
                          "billing_hard_limit_reached billing_not_active payment_required arrearage credits_exhausted "
                          "insufficient_funds billing_error quota_not_enough",
        r"\binsufficient (?:account )?(?:credits?|balance|funds|quota)\b", r"\bpayment required\b",
        r"\bcredit balance is too low\b", r"\b(?:out of|no (?:more |remaining )?|not enough|more) credits\b",
        r"\bbilling (?:hard )?limit\b", r"\bused all (?:available )?credits\b", r"\bspend(?:ing)? (?:limit|cap)\b",
        r"\bquota\b.{0,60}\bplease check your plan and billing\b", r"\bbalance (?:is )?(?:not enough|insufficient|too low)\b",
        r"\bbilling (?:is )?not (?:active|enabled)\b",
        unless="resource_exhausted"),
    "suspended": _rule(
        "suspended", "account_deactivated account_suspended account_disabled organization_deactivated user_suspended "
                     "consumer_suspended account_banned access_terminated",
        r"\b(?:account|organi[sz]ation|subscription|plan|workspace|user|consumer|project)\b.{0,60}"
        r"\b(?:suspended|deactivated|disabled|banned|terminated|blocked)\b", r"\bdue to abuse\b"),
    "daily": _rule(
        "daily_quota_exhausted", "daily_limit_exceeded daily_quota_exceeded tokens_per_day_exceeded",
        r"\b(?:daily|per[ _-]?day|today)\b.{0,80}\b(?:allocation|quota|limit|exhaust\w*|used up|exceeded)\b",
        r"\b(?:allocation|quota|limit|exhaust\w*|used up)\b.{0,120}\b(?:daily|per[ _-]?day|today|tpd|rpd)\b",
        r"\bfree-models-per-day\b", pieces=r"per_?day|daily"),
    "rate": _rule(
        "rate_limited", "rate_limit_exceeded rate_limit_error too_many_requests throttlingexception rate_limited",
        r"\brate[ -]?limit(?:s|ed|ing)?\b", r"\btoo many requests\b", r"\bquota exceeded\b"),
    # NVIDIA answers 400 for a function that is down.
    "degraded": _rule("degraded", "degraded", r"\bdegraded\b.{0,40}\b(?:function|cannot|state|performance)\b|"
                                              r"\bfunction\b.{0,60}\bdegraded\b"),
    "busy": _rule("overloaded", "overloaded_error engine_overloaded_error model_overloaded unavailable service_unavailable",
                  r"\b(?:is|are|currently|temporarily|server|model|engine|service) overloaded\b|^overloaded\b",
                  r"\b(?:temporarily|currently) unavailable\b|\bservice unavailable\b", r"\b(?:at|no|out of) capacity\b"),
    # A prompt that a filter refused: an answer, in the provider's words.
    "moderated": _rule("rejected", "content_filter content_policy_violation moderation_blocked responsibleaipolicyviolation "
                                   "content_moderation data_inspection_failed",
                       r"\bcontent management policy\b|\bcontent policy\b|\bflagged (?:by|for)\b.{0,40}\bmoderation\b"),
    # Groq: the model wrote a call that its parser refused; the text comes along and may be rescued.
    "tool_use": _rule("unsupported", "tool_use_failed"),
    # Told apart from an unknown model by the field: "'max_tokens' is not supported with this model".
    "parameter": _rule(
        "unsupported", "unsupported_parameter unsupported_value unknown_parameter unsupported_country_parameter",
        r"\bunsupported (?:parameter|value|field|argument|feature|role)\b",
        r"\bunrecognized (?:request )?(?:argument|parameter|field|key)\b",
        r"\b(?:unknown|unexpected) (?:parameter|field|argument|name)\b"),
    "model": _rule(
        "model_not_found", "model_not_found invalid_model deploymentnotfound unknown_model model_not_exist model_decommissioned "
                           "model_deprecated model_not_available model_not_supported not_found_error",
        r"\b(?:model|deployment)s?\b.{0,160}?\b(?:does not exist|doesn't exist|do not exist|not exist|was not found|not found|"
        r"could not be found|cannot be found)\b",
        r"\b(?:unknown|invalid|no such|unrecognized|nonexistent|unsupported) model\b", r"\bnot a valid model\b",
        r"\bmodel identifier is invalid\b|\binvalid model (?:id|name)\b", r"\bno endpoints found for\b|\bno model found\b",
        r"\bmodel\b.{0,100}\b(?:decommissioned|no longer (?:supported|available)|retired|end of its life)\b",
        r"\bnot supported for chat completions\b|\bis not a chat model\b"),
    "access": _rule(
        "forbidden_upstream", "model_access_denied access_denied permission_denied plan_limited",
        r"\b(?:not|isn't) (?:allowed|authorized|permitted|entitled) to (?:access|use|invoke)\b",
        r"\bdo(?:es)? ?n[o']t have (?:access|permission)\b", r"\bno access to (?:this )?model\b",
        r"\bmodel access (?:is )?denied\b|\baccess denied\b", r"\baction plan limited\b",
        r"\b(?:upgrade|not (?:included|available) (?:in|on|with)) your (?:current )?(?:plan|subscription|tier)\b"),
    "context_code": _rule("context_too_large", "context_length_exceeded exceed_context_size_error too_many_tokens"),
    "context": _rule(
        "context_too_large", "context_length_exceeded exceed_context_size_error too_many_tokens request_too_large "
                             "string_above_max_length context_window_exceeded",
        r"\b(?:maximum|max) context (?:length|window|size)\b",
        r"\bexceed\w*\b.{0,60}\bcontext (?:length|window|size|limit)\b|\bexceed\w* (?:max(?:imum)? )?(?:input )?length\b",
        r"\b(?:prompt|input|request|message|conversation)s?(?: is| are)? too (?:long|large)\b",
        r"\binput (?:token count|tokens?|length)\b.{0,60}\bexceed",
        r"\bexceeds the maximum (?:number of |allowed )?(?:input )?tokens\b",
        r"\b(?:request|payload|entity|body|content) too large\b", r"\btoo many (?:input |prompt )?tokens\b",
        r"\bcontext (?:length|window) (?:exceeded|is full)\b", r"\breduce the length of the (?:messages|prompt|input)\b"),
    # A range or a feature: another target may well have it.
    "feature": _rule(
        "unsupported", "decimal_above_max_value decimal_below_min_value integer_above_max_value integer_below_min_value "
                       "unsupported_file unsupported_feature not_supported_error unsupported_media_type extra_forbidden "
                       "array_above_max_length invalid_function_parameters invalid_image_format invalid_encrypted_content "
                       "unsupported_content_type not_supported",
        r"\b(?:not|isn't|isn’t|aren't|n[o']t yet|not currently|not yet) (?:be )?supported\b",
        r"\b(?:does|do)(?: not|n't|n’t) (?:currently )?(?:support|accept|allow)\b", r"\bunsupported\b",
        r"\b(?:is|are) (?:unavailable|not available|not enabled|disabled)\b",
        r"\bextra inputs are not permitted\b|\bextra_forbidden\b|\bextraneous key\b",
        r"\bcannot find field\b|\bunknown variant\b",
        r"\b(?:must|should|has to) be (?:less|greater|smaller|larger|lower|higher|at most|at least|between|within)\b",
        r"\b(?:must|should|has to) be in (?:the )?range\b",
        r"\b(?:out of range|above maximum|below minimum|range: ?-?\d)", r"\bexpected a value (?:<|>|between)",
        r"\b(?:max(?:imum)?|min(?:imum)?)[_ ]?(?:completion_|output_|new_)?(?:tokens|value|length|number)\b.{0,80}"
        r"\b(?:too (?:large|high|many|small|low)|exceeds?|supported is|allowed)\b",
        r"\bexceeds? the (?:max(?:imum)?|limit|allowed)\b", r"\btoo (?:many|complex)\b.{0,160}\b(?:tools?|schemas?|parameters|stop)\b",
        r"\b(?:schemas?|tools?)\b.{0,80}\btoo (?:many|complex)\b",
        r"\brequires? (?:the )?`?--?[a-z]", r"\bn must be 1\b|\bonly n ?= ?1\b"),
    # OpenRouter's 404 for a model that it has, asked for what no endpoint of it can do.
    "no_endpoint": _rule("unsupported", "", r"\bno endpoints found that (?:can |could )?(?:support|handle)\b"),
    "policy": _rule("forbidden_upstream", "", r"\bno endpoints found matching your data policy\b|\ball providers have been ignored\b"),
    # A 404 about something that the body refers to.
    "missing_state": _rule(
        "rejected", "previous_response_not_found",
        r"\b(?:file|item|previous response|assistant|thread|image|conversation|vector store|cached ?content|batch)\b"
        r".{0,100}\bnot found\b",
        unless="model_not_found"),
    "timeout": _rule("timeout", "timeout_error timeout deadline_exceeded",
                     r"\btime(?:d)?[ -]?out\b|\bdeadline exceeded\b|\bstalled\b"),
}


def first(names: Iterable[str], said: Words) -> str | None:
    """The kind of the first row that matches."""
    for name in names:
        if RULES[name].matches(said):
            return RULES[name].kind
    return None


_GONE: Final = re.compile(r"\b(?:end[ -]of[ -](?:its )?life|retired|decommissioned|sunset(?:ted)?|410 gone)\b")
_PERHAPS_GONE: Final = re.compile(r"\bno longer (?:available|offered|supported)\b|\b(?:removed|discontinued|deprecated)\b")


def retirement(status: int | None, message: str) -> str:
    """Does a refusal of a model say that it is gone for good? ``definite``, ``probable`` or nothing; a bare 404 is nothing."""
    low = message[:1_000].lower()
    if status == 410 or _GONE.search(low):
        return "definite"
    return "probable" if _PERHAPS_GONE.search(low) else ""
