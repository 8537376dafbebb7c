"""What does the operator's API offer? The table of its paths; ``/admin/api/openapi.json`` is made from it."""
from typing import Any

from gateway.admin import openapi, overview, signin
from gateway.admin.visit import Done, Route

ROUTES: tuple[Route, ...] = (
    Route("GET", "/session", signin.standing, "Who is asking, and by which right.", signin.Standing, open=True),
    Route("POST", "/login", signin.login, "Sign in with the password; sets the session's cookie.", Done,
          body=signin.Credentials, open=True),
    Route("POST", "/logout", signin.logout, "End the session.", Done, open=True),
    Route("GET", "/openapi.json", openapi.openapi, "This description.", dict[str, Any]),
    Route("GET", "/overview", overview.overview, "Totals, rates, latencies and curves of the last hours.", overview.Overview,
          query=overview.Span),
)
