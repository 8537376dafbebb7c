"""The operator's side: a JSON API below /admin/api and the page that uses it. Reads what the gateway knows, changes it on request."""
