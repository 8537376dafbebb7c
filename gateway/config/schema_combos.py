"""What may be written about combos? The tables of [[combos]] and of whatever tunes them; those of the store are the same."""
from typing import Annotated, Any, Literal

from msgspec import Meta

from gateway.config.schema_guards import Guard
from gateway.config.tables import Count, Dollars, Seconds, Share, Strategy, Table, doc


class ComboSettings(Table, frozen=True):
    """What tunes a combo. What is left out comes from the provider's table (time and retries), then from [routing.combo_defaults]."""
    max_depth: Annotated[int | None, Meta(ge=1, le=10), doc("Combos inside of each other; default 3.")] = None
    nested: Annotated[Literal["flatten", "execute"] | None, doc("`flatten` (default): targets of inner combos stand in their place; "
                                                                "`execute`: inner combos go by their own strategy.")] = None
    sticky_limit: Annotated[int | None, Meta(ge=0, le=1_000), doc("Successes in a row on one place (round-robin, weighted).")] = None
    sticky_ttl_s: Annotated[Seconds | None, doc("How long a session keeps its target; default [routing].sticky_ttl_s.")] = None
    context_pin: Annotated[bool | None, doc("A session stays with its model unless that is unwell for longer.")] = None
    handoff: Annotated[Literal["off", "on-switch"] | None, doc("Default [routing].handoff; on with context-relay.")] = None
    max_retries: Annotated[int | None, Meta(ge=0, le=10), doc("Retries of one target before the next; default 0.")] = None
    max_set_retries: Annotated[int | None, Meta(ge=0, le=10), doc("Passes over all targets again; default [routing]'s.")] = None
    set_retry_delay_s: Annotated[float | None, Meta(ge=0, le=60), doc("Pause before one; default [routing]'s.")] = None
    target_timeout_s: Annotated[Seconds | None, doc("Until one target must have answered; 0 (default) = no limit.")] = None
    concurrency: Annotated[Count | None, doc("Requests at a time on one target; 0 (default) = no limit.")] = None
    queue_timeout_s: Annotated[float | None, Meta(ge=0, le=120), doc("Wait for a place when nobody else is left; default 30.")] = None
    queue_depth: Annotated[int | None, Meta(ge=0, le=100), doc("Requests that may wait; 0 = none; default 20.")] = None
    weights: Annotated[dict[str, Any], doc("auto: weights of its factors; they are normalised.")] = {}
    mode_pack: Annotated[Literal["ship-fast", "cost-saver", "quality-first", "offline-friendly", "reliability-first"] | None,
                         doc("auto: a set of weights.")] = None
    router: Annotated[Literal["rules", "cost", "eco", "latency", "fast", "sla", "sla-aware", "lkgp"] | None,
                      doc("auto: how the first is chosen; default rules.")] = None
    exploration: Annotated[Share | None, doc("auto: share of requests that try somebody by lot; default 0.05.")] = None
    budget_cap_usd: Annotated[Dollars | None, doc("auto: what a thousand tokens may cost; 0 (default) = no cap.")] = None
    sla_p95_ms: Annotated[float | None, Meta(ge=0), doc("sla: wanted p95 of the time to the first token; default 2000.")] = None
    sla_error_rate: Annotated[Share | None, doc("sla: wanted share of failures; default 0.05.")] = None
    sla_cost_usd: Annotated[Dollars | None, doc("sla: wanted price per million tokens; 0 (default) = any.")] = None
    sla_hard: Annotated[bool | None, doc("sla: violations decide before scores.")] = None
    reset_session_weight: Annotated[Share | None, doc("reset-aware: weight of the window of five hours; default 0.35.")] = None
    reset_weekly_weight: Annotated[Share | None, doc("reset-aware: weight of the long window; default 0.65.")] = None
    reset_tie_band: Annotated[Share | None, doc("reset-aware: scores this close take turns; default 0.05.")] = None
    reset_tie_s: Annotated[Seconds | None, doc("reset-window: resets this close take turns; default 60.")] = None
    reset_windows: Annotated[tuple[Literal["minute", "session", "daily", "weekly", "monthly"], ...],
                             doc('reset-window: which windows count; default `["weekly"]`.')] = ()
    exhaustion_guard: Annotated[Share | None, doc("reset-aware: what is left below it counts less; default 0.1.")] = None
    quorum: Annotated[int | None, Meta(ge=1, le=50), doc("fusion: default [fusion]'s, as the next two.")] = None
    grace_s: Annotated[float | None, Meta(ge=0, le=120), doc("fusion: what late members get after the quorum.")] = None
    panel_timeout_s: Annotated[float | None, Meta(ge=1, le=600), doc("fusion: time for the whole panel.")] = None


class ComboStep(Table, frozen=True):
    """One place of a combo: a target or another combo."""
    target: Annotated[str, doc("`provider/model`, a model's name, a pattern such as `groq/*`, a combo's name or `auto/…`.")] = ""
    combo: Annotated[str, doc("Another combo.")] = ""
    weight: Annotated[float, Meta(ge=0, le=1_000_000), doc("Chance in a weighted combo.")] = 1.0
    label: Annotated[str, Meta(max_length=200), doc("A name for the place, by which its state is kept.")] = ""
    accounts: Annotated[tuple[str, ...], doc('Keys that may be used there, by place: `["1"]` or `["key1"]`.')] = ()
    tags: Annotated[tuple[str, ...], doc("Words that a request may ask for in `metadata.tags`.")] = ()
    max_retries: Annotated[int | None, Meta(ge=0, le=10), doc("As the combo's, for this place.")] = None
    target_timeout_s: Annotated[Seconds | None, doc("As the combo's, for this place.")] = None
    concurrency: Annotated[Count | None, doc("As the combo's, for this place.")] = None


class TierTable(Table, frozen=True):
    """One tier of a combo: a place, and the tier that follows when it fails."""
    name: Annotated[str, Meta(min_length=1, max_length=100), doc("Its name, for default_tier and fallback.")]
    step: Annotated[str, Meta(min_length=1), doc("The place: its label, or its target or combo as written.")]
    fallback: Annotated[str, doc("The tier that is tried next.")] = ""


class ComboTable(ComboSettings, frozen=True, kw_only=True):
    """A named list of targets with a strategy; clients ask for its name, or for combo/NAME."""
    name: Annotated[str, Meta(min_length=1, max_length=100), doc("What clients ask for.")]
    description: Annotated[str, Meta(max_length=2_000), doc("For people.")] = ""
    strategy: Annotated[Strategy, doc("Order of its targets.")] = "priority"
    targets: Annotated[tuple[ComboStep, ...], doc("Names, or tables. With the strategies auto and bandit none means all.")] = ()
    judge: Annotated[str, doc("fusion: the model that judges.")] = ""
    system_message: Annotated[str, Meta(max_length=50_000), doc("Instructions in place of the client's own.")] = ""
    guards_off: Annotated[tuple[Guard, ...], doc("Guards that do not look at its requests.")] = ()
    tool_filter: Annotated[str, Meta(max_length=1_000), doc("Regular expression: tools with other names are left out.")] = ""
    allowed_providers: Annotated[tuple[str, ...], doc("Only targets of these providers; none = all.")] = ()
    default_tier: Annotated[str, doc("The tier that comes first; default the first of tiers.")] = ""
    tiers: Annotated[tuple[TierTable, ...], doc("Order of places: from the default along the fallbacks, then the rest.")] = ()
