"""What may stand in gateway.toml? One struct per table, one documented field per key, with its default (contract 2).

Types say what one value may be; what fields mean together is ``check``'s business. ``reference.reference()`` makes the
documentation from it.
"""
from typing import Annotated, Any, Literal

from msgspec import Meta

from gateway.config.schema_combos import ComboSettings as ComboSettings
from gateway.config.schema_combos import ComboStep as ComboStep
from gateway.config.schema_combos import ComboTable as ComboTable
from gateway.config.schema_guards import Context as Context
from gateway.config.schema_guards import Effort, Guard
from gateway.config.schema_guards import Guardrails as Guardrails
from gateway.config.schema_guards import Thinking as Thinking
from gateway.config.schema_guards import WebhookGuard as WebhookGuard
from gateway.config.schema_observe import Metrics as Metrics
from gateway.config.schema_observe import Otel as Otel
from gateway.config.schema_observe import Webhook as Webhook
from gateway.config.tables import Count, Dollars, Seconds, Share, Size, Strategy, doc
from gateway.config.tables import Table as Table
from gateway.core.secret import Secret
from gateway.providers.registry import Kind

Wire = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse", "cohere", "ollama"]
Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "query", "none", "oauth", "sigv4", "gcp"]


class Server(Table, frozen=True):
    """Where the gateway listens, and what it takes in."""
    host: Annotated[str, doc("Address to listen on. Off loopback, client keys are required.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535), doc("Port to listen on; 0 takes any free one.")] = 8788
    workers: Annotated[Annotated[int, Meta(ge=1, le=256)] | Literal["auto"],
                       doc('Processes that share the port; "auto": one for each processor.')] = 1
    max_body_bytes: Annotated[int, Meta(ge=1_024), doc("Largest request body, after decoding.")] = 26_214_400
    cors_allow_origins: Annotated[tuple[str, ...], doc('Origins whose pages may call: `["*"]`, or `["https://app.example"]`.')] = ()
    drain_s: Annotated[Seconds, doc("How long running requests may take to end after SIGTERM.")] = 120
    trust_proxy: Annotated[bool, doc("Believe X-Forwarded-For and X-Forwarded-Proto of the peer.")] = False
    tls_cert: Annotated[str, doc("PEM file with the certificate chain; with tls_key: HTTPS.")] = ""
    tls_key: Annotated[str, doc("PEM file with the private key.")] = ""
    unix: Annotated[str, doc("Path of a UNIX socket to listen on as well.")] = ""


class Key(Table, frozen=True):
    """One client key. Without any, the gateway is open, on loopback only."""
    name: Annotated[str, Meta(min_length=1, max_length=100), doc("Name of the client, for limits and records.")]
    key: Annotated[Secret, doc("The key itself; or give sha256.")] = Secret("")
    sha256: Annotated[str, doc("Hexadecimal SHA-256 of the key, so that the file holds no secret.")] = ""
    models: Annotated[tuple[str, ...], doc('Patterns of the models that it may use, such as `["gpt-*", "groq/*"]`.')] = ("*",)
    rpm: Annotated[Count, doc("Requests per minute; 0 = no limit.")] = 0
    tpm: Annotated[Count, doc("Tokens per minute; 0 = no limit.")] = 0
    rpd: Annotated[Count, doc("Requests per day; 0 = no limit.")] = 0
    concurrency: Annotated[Count, doc("Requests at a time; 0 = no limit.")] = 0
    budget_usd_day: Annotated[Dollars, doc("US dollars per day (UTC); 0 = no limit.")] = 0.0
    budget_usd_month: Annotated[Dollars, doc("US dollars per month (UTC); 0 = no limit.")] = 0.0
    allow_unknown_price: Annotated[bool, doc("In spite of a budget, models may be used whose price nobody knows; they count as "
                                             "nothing.")] = False
    group: Annotated[str, doc("The group of [[auth.groups]] whose budget it shares.")] = ""
    expires: Annotated[str, doc("ISO date or time from which the key is refused; a date means 00:00 UTC of that day.")] = ""
    instructions: Annotated[str, Meta(max_length=50_000), doc("Put behind the instructions of every request of this key.")] = ""
    thinking: Annotated[Literal["", "pass", "cap", "off"], doc("As [thinking].mode, with the next two, for this key; empty = as "
                                                               "there.")] = ""
    thinking_max_tokens: Annotated[Count, doc("As [thinking].max_tokens.")] = 0
    thinking_max_effort: Annotated[Effort, doc("As [thinking].max_effort.")] = ""
    guards_off: Annotated[tuple[Guard, ...], doc("Guards that do not look at requests of this key.")] = ()
    mcp_scopes: Annotated[tuple[str, ...], doc('What it may do over MCP: `["read:*", "execute:completions"]`; none = nothing.')] = ()


class Group(Table, frozen=True):
    """Client keys, or groups of them, that share a budget."""
    name: Annotated[str, Meta(min_length=1, max_length=100), doc("Name of the group, for keys and records.")]
    parent: Annotated[str, doc("The group above it, whose budget counts as well.")] = ""
    budget_usd_day: Annotated[Dollars, doc("US dollars per day (UTC) for all of them together; 0 = no limit.")] = 0.0
    budget_usd_month: Annotated[Dollars, doc("US dollars per month (UTC) for all of them together; 0 = no limit.")] = 0.0


class AuthTable(Table, frozen=True):
    """Who may call."""
    keys: Annotated[tuple[Key, ...], doc("Client keys, besides those that `gateway keys` keeps in the store.")] = ()
    groups: Annotated[tuple[Group, ...], doc("Groups of client keys.")] = ()
    required: Annotated[bool, doc("Without any client key nobody is served, instead of everybody on this machine.")] = False


class Store(Table, frozen=True):
    """Where records are kept."""
    url: Annotated[str, doc("`sqlite:FILE` below the state directory, `memory:` or `postgresql://…`.")] = "sqlite:gateway.db"
    retention_days: Annotated[int, Meta(ge=1, le=3_650), doc("How long requests and attempts are kept; sums by the hour at least "
                                                             "three months, by the day three years; bodies a week at most.")] = 30
    master_key: Annotated[Secret, doc("32 random bytes in base64, under which provider keys lie in the store: `${file:/path}`. "
                                      "The first of several seals, the others open. Also: systemd's credential "
                                      "`gateway-master-key`, or GATEWAY_MASTER_KEY.")] = Secret("")


class State(Table, frozen=True):
    """Where nodes share cooldowns, limits, budgets, sessions, stored responses and caches."""
    url: Annotated[Secret, doc("`memory:`, or `redis://…` / `valkey://…` (`rediss://…`, `valkeys://…` with TLS, `unix:///path`); no "
                               "cluster.")] = Secret("memory:")
    prefix: Annotated[str, Meta(min_length=1, max_length=64), doc("How every key there begins; one for each gateway.")] = "gateway:"


class PriceTable(Table, frozen=True):
    """US dollars per million tokens."""
    input: Annotated[Dollars, doc("Input tokens.")] = 0.0
    output: Annotated[Dollars, doc("Output tokens.")] = 0.0
    cached: Annotated[Dollars | None, doc("Input tokens from the provider's cache; default: as input.")] = None
    cache_write: Annotated[Dollars | None, doc("Input tokens written to it; default: as input.")] = None
    reasoning: Annotated[Dollars | None, doc("Output tokens of reasoning; default: as output.")] = None


class ModelTable(Table, frozen=True):
    """One model of a provider. What is left out comes from the catalogue, or is unknown."""
    id: Annotated[str, Meta(min_length=1, max_length=200), doc("The provider's own name of the model.")]
    kind: Annotated[Kind | None, doc("What it does; default chat.")] = None
    context: Annotated[Size | None, doc("Context window in tokens.")] = None
    max_output: Annotated[Size | None, doc("Longest answer in tokens.")] = None
    tools: Annotated[bool | None, doc("It can call tools.")] = None
    vision: Annotated[bool | None, doc("It reads images.")] = None
    reasoning: Annotated[bool | None, doc("It thinks before it answers.")] = None
    completions: Annotated[bool | None, doc("The provider serves it on /completions as well.")] = None
    dimensions: Annotated[Size | None, doc("Length of its embeddings.")] = None
    price: Annotated[PriceTable | None, doc("Price per million tokens.")] = None
    aliases: Annotated[tuple[str, ...], doc("Other names under which clients may ask for it.")] = ()


class LimitsTable(Table, frozen=True):
    """What one account of a provider may be asked; 0 = no limit."""
    rpm: Annotated[Count, doc("Requests per minute.")] = 0
    rpd: Annotated[Count, doc("Requests per day.")] = 0
    tpm: Annotated[Count, doc("Tokens per minute.")] = 0
    tpd: Annotated[Count, doc("Tokens per day.")] = 0
    concurrency: Annotated[Count, doc("Requests at a time.")] = 0


class ProviderTimeouts(Table, frozen=True):
    """Overrides of [timeouts] for one provider, in seconds; 0 = none."""
    connect_s: Annotated[Seconds | None, doc("To an open connection.")] = None
    first_byte_s: Annotated[Seconds | None, doc("To the status line.")] = None
    first_token_s: Annotated[Seconds | None, doc("From the request to the first content or reasoning token.")] = None
    idle_s: Annotated[Seconds | None, doc("Between bytes of the upstream.")] = None
    total_s: Annotated[Seconds | None, doc("Whole call that is not streamed.")] = None


class KeyTable(Table, frozen=True):
    """One key of a provider: one account."""
    key: Annotated[Secret, doc("The key itself.")] = Secret("")
    label: Annotated[str, Meta(max_length=64), doc("A name for it, for records; default key1, key2 …")] = ""
    priority: Annotated[int, Meta(ge=0, le=1_000), doc("Keys with a lower number are used first; equal ones take turns.")] = 0
    models: Annotated[tuple[str, ...], doc('Patterns of the models that it may be used for, such as `["gpt-*"]`; none = all.')] = ()
    proxy: Annotated[Secret, doc("Proxy for this account, instead of the provider's.")] = Secret("")
    tags: Annotated[tuple[str, ...], doc("Words that a request may ask for in `metadata.tags`.")] = ()


class ProviderTable(Table, frozen=True):
    """One upstream."""
    id: Annotated[str, doc("Its name in `provider/model`; default: the preset.")] = ""
    preset: Annotated[str, doc("Catalogue entry to start from.")] = ""
    wire: Annotated[Wire | None, doc("The API language that it speaks; default openai-chat, or the preset's.")] = None
    base_url: Annotated[str, doc("Address with the version segment; the path of the operation is appended.")] = ""
    api_keys: Annotated[tuple[KeyTable, ...], doc("Keys, or tables; each is one account: rotated, cooled and counted alone.")] = ()
    auth: Annotated[Auth | None, doc("How the key travels; default by wire.")] = None
    vars: Annotated[dict[str, str], doc("Values for addresses with placeholders: region, project, deployment.")] = {}
    credentials: Annotated[Any, doc("Credentials for sigv4, gcp and oauth.")] = ""
    oauth: Annotated[dict[str, Any], doc("token_url, client_id, client_secret, refresh_token.")] = {}
    models: Annotated[tuple[ModelTable, ...], doc("Its models: names, or tables with what is known of them.")] = ()
    headers: Annotated[dict[str, str], doc("Headers that are sent with every request.")] = {}
    proxy: Annotated[Secret, doc("`http(s)://` or `socks5://` proxy for this provider.")] = Secret("")
    transport: Annotated[Literal["", "fast", "aiohttp"], doc("HTTP client: the gateway's own (default), or aiohttp's.")] = ""
    quirks: Annotated[tuple[str, ...], doc("Named oddities of this upstream, besides those of the preset.")] = ()
    limits: Annotated[LimitsTable, doc("What one account may be asked.")] = LimitsTable()
    timeouts: Annotated[ProviderTimeouts, doc("Overrides of [timeouts].")] = ProviderTimeouts()
    combos: Annotated[ComboSettings, doc("max_retries and target_timeout_s of its targets in combos.")] = ComboSettings()


class IntentsTable(Table, frozen=True):
    """Words that tell what a message is about, besides those that are known."""
    enabled: Annotated[bool, doc("Look at the words at all.")] = True
    code: Annotated[tuple[str, ...], doc("Words of programming.")] = ()
    math: Annotated[tuple[str, ...], doc("Words of mathematics.")] = ()
    reasoning: Annotated[tuple[str, ...], doc("Words of analysis and planning.")] = ()
    creative: Annotated[tuple[str, ...], doc("Words of stories and verse.")] = ()


class Shadow(Table, frozen=True):
    """Copies of requests that go to another target as well; what it answers is recorded and thrown away."""
    target: Annotated[str, Meta(min_length=1, max_length=400), doc("Who gets them: `provider/model`, a model's or a combo's name.")]
    models: Annotated[tuple[str, ...], doc('Patterns of the names that clients ask for, such as `["gpt-*"]`.')] = ("*",)
    share: Annotated[Share, doc("Share of the requests that are copied.")] = 1.0
    concurrency: Annotated[int, Meta(ge=1, le=100), doc("Copies at a time; above it none is made.")] = 4
    timeout_s: Annotated[float, Meta(gt=0, le=3_600), doc("Time for one answer.")] = 30


class Routing(Table, frozen=True):
    """Who is tried, how often and for how long."""
    strategy: Annotated[Strategy, doc("Order of targets for `auto` and for models with several providers.")] = "priority"
    max_attempts: Annotated[int, Meta(ge=1, le=100), doc("Attempts per request.")] = 20
    budget_s: Annotated[Seconds, doc("Time for all attempts; the first two are exempt; 0 = no limit.")] = 45
    sticky_ttl_s: Annotated[Seconds, doc("How long a session keeps its target.")] = 1_800
    transient_cooldown_s: Annotated[Seconds, doc("Rest after 5xx, timeout, transport failure and 429 without a stated time.")] = 90
    handoff: Annotated[Literal["off", "on-switch"], doc("Tell a model that takes a session over what was said last.")] = "off"
    hedge: Annotated[Literal["off", "deadline", "race"],
                     doc("`deadline`: the budget also ends a silent attempt; `race`: a second is asked, who is first wins.")] = "off"
    hedge_after_s: Annotated[Seconds, doc("race: silence before the second; 0 = the target's own p95, once it is known.")] = 0
    hedge_share: Annotated[Share, doc("race: share of requests that may be asked twice.")] = 0.1
    wait_s: Annotated[float, Meta(ge=0, le=600), doc("Wait so long in all for the nearest cooldown to end, instead of failing.")] = 0
    max_set_retries: Annotated[int, Meta(ge=0, le=10), doc("Passes over all targets again, when failures may have passed.")] = 0
    set_retry_delay_s: Annotated[float, Meta(ge=0, le=60), doc("Before such a pass.")] = 2
    rpm_default: Annotated[Count, doc("Requests per minute of an account whose provider sets no rpm; 0 = no limit.")] = 0
    aliases: Annotated[dict[str, str], doc('Names of your own, patterns too: `{"gpt-4*" = "combo/best"}`; the closest wins.')] = {}
    families: Annotated[dict[str, str], doc('What stands in for families nobody serves: `{opus = "a/big", default = "auto"}`.')] = {}
    emergency: Annotated[str, doc("Model to ask when auto or a combo is out of credits and no tools are needed; empty = none.")] = ""
    background_models: Annotated[dict[str, str], doc("Who does clients' chores, titles and the like, by the model they ask for: "
                                                     '`{"*" = "a/small"}`.')] = {}
    volume: Annotated[Literal["off", "adaptive"], doc("Cheap targets first under load, strong ones for heavy requests.")] = "off"
    intents: Annotated[IntentsTable, doc("What `auto` makes of the words of a request.")] = IntentsTable()
    shadow: Annotated[tuple[Shadow, ...], doc("Targets that get copies of requests.")] = ()
    combo_defaults: Annotated[ComboSettings, doc("Settings that combos leave out.")] = ComboSettings()


class RuleTable(Table, frozen=True):
    """Fields of the bodies that leave for upstreams, in the upstream's own words: left out, filled in, fixed; in this order."""
    models: Annotated[tuple[str, ...], doc('Patterns of model ids or `provider/model`, such as `["gpt-5*"]`.')] = ("*",)
    providers: Annotated[tuple[str, ...], doc("Patterns of provider ids; none = all.")] = ()
    wires: Annotated[tuple[Wire, ...], doc("API languages of the upstream; none = all.")] = ()
    remove: Annotated[tuple[str, ...], doc('Paths of fields to leave out: `["user", "reasoning.summary"]`.')] = ()
    default: Annotated[dict[str, Any], doc('Values for fields that are not there: `{"reasoning.effort" = "low"}`.')] = {}
    override: Annotated[dict[str, Any], doc("Values whatever the client wrote. Not model, stream, n, the dialogue or keys.")] = {}


class Stream(Table, frozen=True):
    """What may leave, and when."""
    tool_calls: Annotated[Literal["whole", "live"], doc("`whole`: complete and failover-safe; `live`: as they come.")] = "whole"
    reasoning: Annotated[Literal["hold", "live"], doc("`hold`: until the commit point; `live`: reasoning commits.")] = "hold"
    hold_max_s: Annotated[Seconds, doc("Silence before the commit point that is bearable.")] = 30
    hold_max_bytes: Annotated[int, Meta(ge=1_024), doc("What may be held for one turn; above it, it commits.")] = 4_194_304
    max_frame_bytes: Annotated[int, Meta(ge=1_024), doc("Largest frame of an upstream's stream.")] = 8_388_608
    model_echo: Annotated[Literal["routed", "requested", "upstream"], doc("The model name that clients see.")] = "routed"
    rescue: Annotated[bool, doc("Turn tool calls that a model wrote as text into calls.")] = True
    rescue_scan: Annotated[Count, doc("Characters that may be held to recognise one.")] = 256
    resume: Annotated[Literal["off", "continue"], doc("After the commit point, another target continues the text.")] = "off"
    done_after_error: Annotated[bool, doc("`[DONE]` after an error frame on chat surfaces.")] = True
    usage: Annotated[Literal["asked", "always"], doc("Usage chunk on chat: when the client asks, or always.")] = "asked"


class Timeouts(Table, frozen=True):
    """Seconds; 0 = none."""
    connect_s: Annotated[Seconds, doc("To an open connection.")] = 10
    first_byte_s: Annotated[Seconds, doc("To the status line.")] = 60
    first_token_s: Annotated[Seconds, doc("From the request to the first content or reasoning token.")] = 90
    idle_s: Annotated[Seconds, doc("Between bytes of the upstream; comments and pings count as life.")] = 90
    total_s: Annotated[Seconds, doc("Whole call that is not streamed.")] = 600
    keepalive_s: Annotated[Seconds, doc("Silence towards the client after the commit point; then a keep-alive.")] = 15
    early_keepalive_s: Annotated[Seconds, doc("Above 0: send 200 and keep-alives after this long without a commit.")] = 0


class Cache(Table, frozen=True):
    """Whole answers, replayed."""
    enabled: Annotated[bool, doc("Keep and replay answers.")] = False
    ttl_s: Annotated[Seconds, doc("How long an answer is kept.")] = 3_600
    max_entries: Annotated[Count, doc("How many are kept.")] = 1_000
    max_bytes: Annotated[Count, doc("Memory for all of them; one answer is at most 2 MB.")] = 134_217_728
    max_temperature: Annotated[float, Meta(ge=0, le=2), doc("Requests above it are not cached.")] = 1.0
    persist: Annotated[bool, doc("Answers that are no streams outlive a restart, where the store is not memory.")] = True


class Compression(Table, frozen=True):
    """Making prompts smaller."""
    mode: Annotated[Literal["off", "lossless", "standard", "aggressive"], doc("How far it goes.")] = "off"
    auto_trigger_tokens: Annotated[Count, doc("From so many tokens on a prompt is compressed aggressively, down to nine tenths of "
                                              "them; 0 = never.")] = 0
    target_tokens: Annotated[Count, doc("Prompts of at most so many tokens stay as they are, larger ones are compressed until they "
                                        "are; 0 = no target.")] = 0
    filters: Annotated[str, doc("Folder with filters of your own for the output of commands (`*.toml`, `*.json`).")] = ""


class Fusion(Table, frozen=True):
    """Panel and judge."""
    k: Annotated[int, Meta(ge=1, le=50), doc("Members of a panel; of a combo, all of its targets are.")] = 4
    max_k: Annotated[int, Meta(ge=1, le=50), doc("Most members that a request or a combo may ask for.")] = 8
    judge: Annotated[str, doc("Model or combo that judges; default: who answered first in order, then the others.")] = ""
    progress: Annotated[bool, doc("Send the panel's frames live: 200 leaves at once, failures come in-band.")] = False
    quorum: Annotated[int, Meta(ge=1, le=50), doc("Answers after which the others get grace_s more.")] = 2
    grace_s: Annotated[float, Meta(ge=0, le=120), doc("What late members get after the quorum.")] = 8
    timeout_s: Annotated[float, Meta(ge=1, le=600), doc("Time for the whole panel.")] = 90


class Images(Table, frozen=True):
    """Pictures inside of requests."""
    max_side: Annotated[Count, doc("Larger ones are scaled to so many pixels (extra `images`); 0 = they stay as they are.")] = 0


class Jobs(Table, frozen=True):
    """What is done while nobody asks."""
    discovery_s: Annotated[float, Meta(ge=0, le=604_800),
                           doc('Between two looks for models of providers with `models = ["*"]`; 0 = at the start only.')] = 3_600
    probe_s: Annotated[Seconds, doc("Between two tries of an account, one after the other, by its list of models; 0 = none.")] = 0


class Ollama(Table, frozen=True):
    """The Ollama surface."""
    mode: Annotated[Literal["off", "loopback", "key"], doc("Who may use it.")] = "off"


class Limits(Table, frozen=True):
    """What the gateway as a whole takes on."""
    request_max_tokens: Annotated[Count, doc("Input and output tokens of one request; 0 = no limit.")] = 0
    vendor_fields: Annotated[tuple[str, ...], doc("Fields that choose models or price (models, provider, plugins, service_tier …) "
                                                  "which keys with a model list or a budget may send all the same.")] = ()
    max_inflight: Annotated[Count, doc("Requests at a time; above it 503 with Retry-After; 0 = no limit.")] = 0
    max_lag_s: Annotated[Seconds, doc("Lateness of the event loop above which requests are refused with 503; 0 = no limit.")] = 0
    budget_usd_day: Annotated[Dollars, doc("US dollars per day (UTC) for everybody together; 0 = no limit.")] = 0.0
    budget_usd_month: Annotated[Dollars, doc("US dollars per month (UTC) for everybody together; 0 = no limit.")] = 0.0


class Mcp(Table, frozen=True):
    """The MCP server."""
    enabled: Annotated[bool, doc("Serve /mcp.")] = False


class Admin(Table, frozen=True):
    """The operator's pages."""
    enabled: Annotated[bool, doc("Serve /admin.")] = True
    password_hash: Annotated[Secret, doc("Made by `gateway admin-password`; without one the page is loopback only.")] = Secret("")
    key: Annotated[Secret, doc("Key for scripts.")] = Secret("")


class Log(Table, frozen=True):
    """What is written while running."""
    level: Annotated[Literal["debug", "info", "warning", "error"], doc("Least severity that is written.")] = "info"
    format: Annotated[Literal["text", "json"], doc("Form of a line.")] = "text"
    fallback_detail_header: Annotated[bool, doc("Send X-Fallback-Detail.")] = False
    decision_header: Annotated[bool, doc("Send X-Gateway-Decision: who was to be asked, in which order and why.")] = False
    capture_bodies: Annotated[bool, doc("Keep request and response bodies with the records.")] = False


class Config(Table, frozen=True):
    """gateway.toml."""
    server: Server = Server()
    auth: AuthTable = AuthTable()
    store: Store = Store()
    state: State = State()
    providers: tuple[ProviderTable, ...] = ()
    combos: tuple[ComboTable, ...] = ()
    routing: Routing = Routing()
    rules: tuple[RuleTable, ...] = ()
    stream: Stream = Stream()
    timeouts: Timeouts = Timeouts()
    cache: Cache = Cache()
    compression: Compression = Compression()
    context: Context = Context()
    thinking: Thinking = Thinking()
    guardrails: Guardrails = Guardrails()
    fusion: Fusion = Fusion()
    images: Images = Images()
    jobs: Jobs = Jobs()
    ollama: Ollama = Ollama()
    limits: Limits = Limits()
    mcp: Mcp = Mcp()
    admin: Admin = Admin()
    log: Log = Log()
    metrics: Metrics = Metrics()
    otel: Otel = Otel()
    webhooks: tuple[Webhook, ...] = ()
