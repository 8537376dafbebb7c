"""Which names does a configuration serve? Its catalogue, made of the compiled tables."""
from gateway.config.snapshot import Snapshot
from gateway.routing.catalog import Catalog


def catalog(snapshot: Snapshot) -> Catalog:
    routing = snapshot.routing
    return Catalog(snapshot.providers, routing.strategy, routing.families, aliases=routing.aliases, combos=snapshot.combos,
                   emergency=routing.emergency)
