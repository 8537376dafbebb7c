"""What does the operator's API offer? The table of its paths; ``/admin/api/openapi.json`` is made from it."""
from typing import Any

from gateway.admin import audit, live, logs, openapi, overview, playground, routing, settings, signin, upstreams
from gateway.admin.visit import Done, Route

ROUTES: tuple[Route, ...] = (
    Route("GET", "/session", signin.standing, "Who is asking, and by which right.", signin.Standing, open=True),
    Route("POST", "/login", signin.login, "Sign in with the password; sets the session's cookie.", Done,
          body=signin.Credentials, open=True),
    Route("POST", "/logout", signin.logout, "End the session.", Done, open=True),
    Route("GET", "/openapi.json", openapi.openapi, "This description.", dict[str, Any]),
    Route("GET", "/overview", overview.overview, "Totals, rates, latencies and curves of the last hours.", overview.Overview,
          query=overview.Span),
    Route("GET", "/live", live.live, "Requests in flight with their attempts so far.", live.Live, query=live.Shown),
    Route("GET", "/providers", upstreams.providers, "Providers with health, breakers and cooldowns.", upstreams.Providers),
    Route("GET", "/providers/{id}", upstreams.one, "One provider with its models.", upstreams.OneProvider),
    Route("POST", "/providers/{id}/test", upstreams.test, "Ask it for its models with each key.", upstreams.Tested),
    Route("POST", "/cooldowns/clear", upstreams.clear, "End the cooldowns of a provider, a model or a key, and its breaker.",
          upstreams.Cleared, body=upstreams.Clear),
    Route("GET", "/explain", routing.explained, "Who would serve a name now, in which order and why.", routing.Explained,
          query=routing.Described),
    Route("GET", "/names", routing.names, "Every name that a client may ask for.", routing.Names),
    Route("POST", "/playground", playground.chat, "Ask like a client would: a body of /v1/chat/completions.", dict[str, Any],
          raw=True),
    Route("POST", "/trial", playground.trial, "Ask several names one short question each; costs what it costs.", playground.Outcomes,
          body=playground.Trial),
    Route("GET", "/config", settings.view, "The configuration in force, without secrets.", settings.View),
    Route("GET", "/config/diff", settings.diff, "What a reload would change.", settings.Verdict),
    Route("POST", "/config/validate", settings.validate, "Is this configuration good, and what would it change?", settings.Verdict,
          body=settings.Text),
    Route("POST", "/reload", settings.reload, "Put the configuration file in force; a bad one is refused.", settings.Reloaded),
    Route("GET", "/logs", logs.lines, "The last lines of the log.", logs.Lines, query=logs.Wanted),
    Route("GET", "/logs/tail", logs.tail, "Lines as they come, as server-sent events.", logs.Line, query=logs.Wanted,
          stream="text/event-stream"),
    Route("GET", "/audit", audit.audit, "Who changed what.", audit.Changes, query=audit.Page),
)
