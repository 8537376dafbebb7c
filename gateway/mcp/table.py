"""Which tools are there? The table of them: what each needs, says and does."""
from typing import Final

from gateway.admin import audit, combos, keys, live, playground, records, savings, settings, upstreams, usage
from gateway.mcp.tool import Tool, as_body, as_param, as_query
from gateway.mcp.tools import combos as the_combos
from gateway.mcp.tools import keys as the_keys
from gateway.mcp.tools import models, money, providers, routing, running

TOOLS: Final[tuple[Tool, ...]] = (
    # providers
    Tool("list_providers", ("read:providers",), "List the upstreams in the order in which they are tried: state, keys, cooldowns, "
         "what was measured.", providers.listed, providers.Some, "config"),
    Tool("get_provider", ("read:providers",), "One upstream with its models, keys and cooldowns.", providers.one, providers.One,
         "config"),
    Tool("get_provider_metrics", ("read:health",), "How an upstream did: percentiles of latency and failures by model, breaker, "
         "cooldowns.", providers.metrics, providers.Lately, "store"),
    Tool("test_provider", ("execute:providers",), "Ask an upstream for its list of models with each key: are the keys good? Costs "
         "nothing.", as_param(upstreams.test, "id"), providers.One, "config"),
    Tool("check_quota", ("read:quota",), "What is left of the quotas of provider accounts, as limits and answers tell it.",
         providers.quota, providers.Maybe),
    Tool("list_cooldowns", ("read:health",), "Who rests, why and for how long.", providers.cooldowns, providers.Maybe),
    Tool("clear_cooldown", ("write:resilience",), "End the cooldowns of an upstream, of a model or of a key of it, and close its "
         "breaker.", as_body(upstreams.clear), upstreams.Clear),
    # combos
    Tool("list_combos", ("read:combos",), "List the combos of the configuration and of the store.", the_combos.listed,
         the_combos.Which, "config"),
    Tool("get_combo", ("read:combos",), "One combo with its targets, table and warnings.", the_combos.one, the_combos.One, "config"),
    Tool("get_combo_metrics", ("read:combos", "read:health"), "How each target of a combo does now: usable keys, success, latency, "
         "price.", the_combos.metrics, the_combos.One),
    Tool("create_combo", ("write:combos",), "Make a combo: a named list of targets with a strategy. In force at once.",
         the_combos.create, the_combos.NewCombo, "store", again=False),
    Tool("edit_combo", ("write:combos",), "Change a combo of the store; what is left out stays.", the_combos.edit, the_combos.Edit,
         "store", destroys=True),
    Tool("set_routing_strategy", ("write:combos",), "Give a combo of the store another strategy.", the_combos.strategy,
         the_combos.NewStrategy, "store"),
    Tool("delete_combo", ("write:combos",), "Delete a combo of the store that no other one is made of.", the_combos.delete,
         the_combos.One, "store", again=False, destroys=True),
    Tool("order_combos", ("write:combos",), "Put the store's combos in order.", as_body(combos.order), combos.Order, "store"),
    Tool("test_combo", ("read:combos", "execute:completions"), "Ask every target of a combo something tiny by one of its keys; costs "
         "a few tokens, changes no health.", the_combos.test, the_combos.One, "config"),
    # routing
    Tool("simulate_route", ("read:health", "read:combos"), "Who would serve a request now, in which order, why, and at what cost? "
         "Nobody is asked.", routing.simulate, routing.Request, "config"),
    Tool("explain_route", ("read:health", "read:requests"), "Why did a request go where it went? Its decision, attempts and "
         "failures.", routing.explain, routing.Past, "store"),
    Tool("best_combo_for_task", ("read:combos", "read:health"), "Which combo suits a kind of task, within limits of price and "
         "latency? All of them, ranked.", routing.best, routing.Wish, "config"),
    Tool("test_route", ("execute:completions",), "Ask several models or combos one short question each, and compare: who answered, "
         "how fast, by which attempts. Costs what it costs.", as_body(playground.trial), playground.Trial, again=False),
    Tool("route_request", ("execute:completions",), "Send a chat request through the gateway by your key's limits and budget, and "
         "read the answer.", routing.route, routing.Chat, again=False),
    # models
    Tool("list_models", ("read:models",), "List the names that may be asked for, with context, abilities and prices.", models.listed,
         models.Narrow, "config"),
    Tool("find_model", ("read:models",), "Which targets can do what is needed: tools, pictures, reasoning, context, price?",
         models.find, models.Need, "config"),
    Tool("get_prices", ("read:models",), "What a model costs at each provider that serves it.", models.prices, models.Named, "config"),
    # usage, cost, requests
    Tool("usage_report", ("read:usage",), "Requests, tokens, cost and latencies over time, by model, provider, key or client.",
         as_query(usage.usage), usage.Span, "store"),
    Tool("cost_report", ("read:usage",), "What was spent in this session, day, week or month, the dearest first.", money.report,
         money.Period, "store"),
    Tool("get_session_snapshot", ("read:usage",), "This process so far: requests, cost, tokens, the busiest models, errors.",
         money.session, money.Minutes),
    Tool("list_requests", ("read:requests",), "Requests that ended, newest first; may be narrowed by time, key, model, outcome …",
         as_query(records.requests), records.Wanted, "store"),
    Tool("list_live_requests", ("read:requests",), "Requests in flight with their attempts so far.", as_query(live.live), live.Shown),
    # budgets
    Tool("list_budgets", ("read:budget",), "Budgets of keys and groups, what is spent of them and what is left.", money.budgets,
         needs="store"),
    Tool("set_key_budget", ("write:budget",), "Set what a key of the store may spend a day and a month; 0 = no limit.", money.set_key,
         money.KeyBudget, "store"),
    Tool("set_group_budget", ("write:budget",), "Set what a group of keys may spend together; makes the group where there is none.",
         money.set_group, money.GroupBudget, "store"),
    # cache and compression
    Tool("cache_stats", ("read:cache",), "What the cache of answers holds, hits and saves.", running.cache),
    Tool("cache_flush", ("write:cache",), "Forget every answer that could be given again.", as_query(savings.clear), destroys=True),
    Tool("compression_status", ("read:compression",), "How far prompts are made smaller, and what that saved.", running.compression),
    Tool("compression_preview", ("read:compression",), "What would be sent of a request's body in a mode; nobody is asked.",
         as_body(savings.preview), savings.Preview, "config"),
    # configuration
    Tool("get_config", ("read:config",), "The configuration in force, without secrets: what differs from the defaults.",
         running.configuration, running.Shown, "config"),
    Tool("validate_config", ("read:config",), "Is this gateway.toml good, and what would it change? Nothing is put in force.",
         as_body(settings.validate), settings.Text, "config"),
    Tool("diff_config", ("read:config",), "What a reload of the configuration file would change.", as_query(settings.diff)),
    Tool("reload_config", ("write:config",), "Put the configuration file in force; a bad one is refused with its problems.",
         as_query(settings.reload)),
    # the gateway itself
    Tool("get_health", ("read:health",), "The gateway in one look: uptime, load, latencies, unwell providers, store, cache.",
         running.health),
    Tool("list_sessions", ("read:sessions",), "Which targets sessions are bound to.", running.sessions, running.Sessions),
    Tool("read_logs", ("read:logs",), "The last lines of the log, masked.", running.lines, running.Lines),
    # keys and audit
    Tool("list_keys", ("read:keys",), "Client keys and groups, what they may do and have spent; no secrets.", the_keys.listed,
         needs="store"),
    Tool("create_key", ("write:keys",), "Make a client key. Its secret is told once, in the answer.", as_body(keys.create),
         keys.NewKey, "store", secret=True, again=False),
    Tool("update_key", ("write:keys",), "Change what a client key of the store may do.", the_keys.change, the_keys.Change, "store"),
    Tool("rotate_key", ("write:keys",), "Give a client key of the store a new secret, told once; the old one may stay good for a "
         "while.", the_keys.rotate, the_keys.Renewal, "store", secret=True, again=False, destroys=True),
    Tool("revoke_key", ("write:keys",), "Revoke a client key of the store, at once and for good.", as_param(keys.revoke, "id"),
         the_keys.One, "store", again=False, destroys=True),
    Tool("list_audit", ("read:audit",), "Who changed what, and which tools were called.", as_query(audit.audit), audit.Page, "store"),
)
BY_NAME: Final[dict[str, Tool]] = {tool.name: tool for tool in TOOLS}
