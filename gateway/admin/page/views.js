/** Which pages are there, and in which order are they offered? */
import audit from "./views/audit.js";
import combos from "./views/combos.js";
import config from "./views/config.js";
import explain from "./views/explain.js";
import keys from "./views/keys.js";
import live from "./views/live.js";
import logs from "./views/logs.js";
import overview from "./views/overview.js";
import playground from "./views/playground.js";
import provider from "./views/provider.js";
import providers from "./views/providers.js";
import request from "./views/request.js";
import requests from "./views/requests.js";
import savings from "./views/savings.js";
import usage from "./views/usage.js";

export const VIEWS = { overview, live, requests, request, usage, providers, provider, combos, explain, playground, keys, savings, config, logs, audit };

export const GROUPS = [
  ["Watch", ["overview", "live", "requests", "usage", "logs"]],
  ["Route", ["providers", "combos", "explain", "playground"]],
  ["Manage", ["keys", "savings", "config", "audit"]],
];
