"""What operators are given holds what it says: units, installer, images, the list of what is inside."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from gateway.config.load import loads
from tests.arch.source import ROOT
from tests.arch.test_packaging import canonical, pinned

DEPLOY = ROOT / "scripts" / "deploy"
UNIT = (DEPLOY / "gateway.service").read_text(encoding="utf-8")
MOST = 2.5                                       # of systemd's ten points of exposure
systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")


def told(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, **more)


@systemd
def test_the_service_is_little_exposed():
    said = told("systemd-analyze", "security", "--offline=true", "--no-pager", str(DEPLOY / "gateway.service")).stdout
    assert float(re.search(r"Overall exposure level for gateway.service: ([\d.]+)", said)[1]) <= MOST


@systemd
def test_systemd_understands_every_line_of_the_units():
    said = told("systemd-analyze", "verify", "--man=no", str(DEPLOY / "gateway.service"), str(DEPLOY / "gateway.socket")).stderr
    known = ("notify-reload", "is not executable")       # older than 253; not installed here
    assert not [line for line in said.splitlines() if "gateway" in line and not any(word in line for word in known)]


def test_the_manager_waits_longer_than_a_drain_takes():
    from gateway.config.schema import Server

    assert int(re.search(r"TimeoutStopSec=(\d+)", UNIT)[1]) > Server().drain_s
    assert int(re.search(r"(\d+)s", yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["gateway"]["stop_grace_period"])[1]) > \
        Server().drain_s


def test_a_dry_run_changes_nothing_and_names_every_step(tmp_path):
    said = told(ROOT / "scripts" / "install", "--dry-run", env={**os.environ, "PYTHON": sys.executable})
    assert said.returncode == 0, said.stderr
    for step in ("useradd", "-m venv", "--require-hashes", "/etc/systemd/system/gateway.service", "daemon-reload"):
        assert any(line.startswith("+ ") and step in line for line in said.stdout.splitlines()), step


def test_what_is_staged_is_whole_and_a_second_time_changes_nothing_of_yours(tmp_path):
    stage = (ROOT / "scripts" / "install", "--stage", tmp_path)
    assert told(*stage).returncode == 0
    etc = tmp_path / "etc"
    key, config, unit = etc / "gateway/credentials/gateway-master-key", etc / "gateway/gateway.toml", etc / "systemd/system/gateway.service"
    assert key.stat().st_mode & 0o77 == 0 and len(key.read_text()) == 45
    assert unit.read_text() == UNIT
    before = key.read_text(), unit.stat().st_mtime_ns
    config.write_text("# mine\n")
    assert told(*stage).returncode == 0
    assert (key.read_text(), unit.stat().st_mtime_ns, config.read_text()) == (*before, "# mine\n")


def test_the_installer_says_what_it_takes():
    said = told(ROOT / "scripts" / "install", "--help")
    assert said.returncode == 0 and all(option in said.stdout for option in ("--dry-run", "--no-start", "--stage DIR"))


def test_an_unknown_option_of_the_installer_is_refused():
    assert told(ROOT / "scripts" / "install", "--forec").returncode == 2


def test_the_configurations_that_come_along_are_good():
    assert loads((DEPLOY / "gateway.toml").read_text(encoding="utf-8"), {}).server.port == 8788
    names = {"GATEWAY_KEY": "gw-1", "GATEWAY_STORE_URL": "postgresql://gateway:x@postgres/gateway", "GATEWAY_STATE_URL": "memory:",
             "OPENAI_API_KEY": "sk-1"}
    assert loads((DEPLOY / "compose.toml").read_text(encoding="utf-8"), names).keys


def test_the_image_is_made_of_what_is_there_and_runs_as_nobody():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    sources = [word for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M) for word in line.split()[:-1]]
    assert sources and all((ROOT / source).exists() for source in sources)
    assert "USER gateway" in text and "--require-hashes" in text
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {source.split("/")[0] for source in sources} & set(ignored)


def test_the_composition_names_what_it_mounts_and_waits_for():
    doc = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert set(doc["services"]["gateway"]["depends_on"]) == {"valkey", "postgres"} < set(doc["services"])
    mounts = [mount.split(":")[0] for service in doc["services"].values() for mount in service.get("volumes", ())]
    assert all((DEPLOY / mount).exists() if mount.startswith("./") else mount in doc["volumes"] for mount in mounts)


def test_the_bill_of_materials_lists_every_pin_with_its_hashes():
    doc = json.loads(told(sys.executable, ROOT / "scripts" / "sbom").stdout)
    assert (doc["bomFormat"], doc["specVersion"]) == ("CycloneDX", "1.6") and doc["metadata"]["component"]["name"] == "gateway"
    listed = {canonical(one["name"]): one for one in doc["components"] if one["purl"].startswith("pkg:pypi/")}
    pins = pinned("requirements.lock")
    assert set(listed) == set(pins)
    for name, entry in pins.items():
        assert entry.startswith(f"{listed[name]['name']}=={listed[name]['version']}")
        assert {one["content"] for one in listed[name]["externalReferences"][0]["hashes"]} == set(re.findall(r"sha256:([0-9a-f]{64})", entry))
    assert "pkg:npm/uplot" in "".join(one["purl"] for one in doc["components"])
    assert len({one["bom-ref"] for one in doc["components"]}) == len(doc["components"])
    assert told(sys.executable, ROOT / "scripts" / "sbom").stdout == json.dumps(doc, indent=1) + "\n", "always the same"
