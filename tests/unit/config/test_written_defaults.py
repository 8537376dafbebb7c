"""A configuration that says what would hold anyway is a good one."""
from tests.unit.config.files import good, upstream

KEY = '[[auth.keys]]\nname = "a"\nkey = "k"\n'


def test_the_defaults_may_be_written_out():
    good('[server]\nworkers = 1\n[store]\nurl = "sqlite:gateway.db"\n[state]\nurl = "memory:"\n[routing]\nstrategy = "priority"\n'
         'handoff = "off"\nhedge = "deadline"\n[stream]\nresume = "off"\n[cache]\nenabled = false\nttl_s = 3600\n[compression]\n'
         'mode = "off"\n[fusion]\nk = 4\njudge = ""\n[ollama]\nmode = "off"\n[mcp]\nenabled = false\n[admin]\nenabled = true\n'
         'password_hash = ""\n[log]\ncapture_bodies = false\n' + KEY + "budget_usd_day = 0.0\n"
         + upstream('wire = "openai-chat"\nauth = "x-api-key"\nvars = {}\ncredentials = ""\n'))
    assert good('[store]\nurl = "memory:"').providers == ()
