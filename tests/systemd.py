"""A real service manager for a test: ``systemd --user`` with processes and mounts of its own, in which the units that we ship run."""
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.arch.source import ROOT

PROGRAM = "/lib/systemd/systemd"
HIERARCHIES = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
# Control groups of its own first, so that whatever it does to its groups it does there.
APART = f"""for at in {' '.join(HIERARCHIES)}; do
  if [ -w $at/cgroup.procs ] && mkdir $at/gateway-test-$$; then echo $$ > $at/gateway-test-$$/cgroup.procs; fi
done 2>/dev/null
exec unshare -mpfC --mount-proc --kill-child bash"""
# What the system's manager makes at boot, and the user's relies on.
SCENE = """mount -t tmpfs tmpfs /run || exit 1
mkdir -p /run/systemd/system /run/systemd/inaccessible/dir /run/user/0
touch /run/systemd/inaccessible/reg; mkfifo /run/systemd/inaccessible/fifo; chmod 700 /run/user/0
export XDG_RUNTIME_DIR=/run/user/0 HOME={folder} XDG_CONFIG_HOME={folder}/.config XDG_STATE_HOME={folder}/state
{program} --user --unit=idle.target </dev/null >/dev/null 2>&1 &
for try in $(seq 100); do systemctl --user is-system-running >/dev/null 2>&1 && break; sleep 0.1; done
"""
# What differs from an installed service: who it runs as, where its files lie (below /tmp perhaps, which it does not see), and how long
# a test wants to wait.
DROP_IN = """[Service]
User=
Group=
{type}
ExecStart=
ExecStart={python} -m gateway serve --config {etc}/gateway.toml
LoadCredential=
LoadCredential=gateway-master-key:{etc}/credentials/gateway-master-key
ProtectHome=no
BindPaths={folder}
BindReadOnlyPaths={root} {prefix}
Environment=PYTHONPATH={root}
StandardOutput=append:{folder}/log
StandardError=append:{folder}/log
WatchdogSec=2
RestartSec=100ms
"""
BEFORE_253 = "Type=notify\nExecReload=\nExecReload=/bin/kill -HUP $MAINPID"
END = "@end@"


class Manager:
    """``port``: where gateway.socket listens. Skips the test where a manager cannot be run."""

    def __init__(self, folder: Path, port: int) -> None:
        self.log, self.config = folder / "log", folder / "stage/etc/gateway/gateway.toml"
        if os.getuid() or not os.path.exists(PROGRAM) or not all(map(shutil.which, ("unshare", "systemctl"))):
            pytest.skip("no service manager, or not allowed to run one")
        self._install(folder, port)
        self._shell = subprocess.Popen(["bash", "-c", APART], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
        try:
            self.do(SCENE.format(folder=folder, program=PROGRAM))
            runs = self.do("systemctl --user is-system-running")[1].strip() == "running"
        except (OSError, EOFError):                  # not allowed to be apart
            runs = False
        if not runs:
            self.end()
            pytest.skip("a service manager does not come up here")

    def _install(self, folder: Path, port: int) -> None:
        subprocess.run([ROOT / "scripts" / "install", "--stage", folder / "stage"], check=True, capture_output=True)
        units = folder / ".config/systemd/user"
        shutil.copytree(folder / "stage/etc/systemd/system", units)
        told = subprocess.run(["systemctl", "--version"], capture_output=True, text=True).stdout
        drop_in = DROP_IN.format(type=BEFORE_253 if int(told.split()[1]) < 253 else "", python=sys.executable, root=ROOT, folder=folder,
                                 prefix=sys.prefix, etc=self.config.parent)
        for name, text in (("gateway.service", drop_in), ("gateway.socket", f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{port}\n")):
            (units / f"{name}.d").mkdir()
            (units / f"{name}.d" / "here.conf").write_text(text)
        (units / "idle.target").write_text("[Unit]\nDescription=Nothing\n")

    def do(self, command: str) -> tuple[int, str]:
        """A command beside the manager: its status and what it says."""
        assert self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command.rstrip()}\n}}\necho {END} $?\n")
        self._shell.stdin.flush()
        said = []
        for line in self._shell.stdout:
            if line.startswith(END):
                return int(line.split()[1]), "".join(said)
            said.append(line)
        raise EOFError(f"the shell is gone: {said}")

    def ctl(self, command: str) -> tuple[int, str]:
        return self.do(f"timeout 20 systemctl --user {command}")

    def shows(self, name: str) -> str:
        return self.ctl(f"show --value --property={name} gateway.service")[1].strip()

    def end(self) -> None:
        self._shell.kill()
        self._shell.communicate()
        for hierarchy in HIERARCHIES:
            top = Path(hierarchy) / f"gateway-test-{self._shell.pid}"
            for group in sorted((one for one in (top, *top.rglob("*")) if one.is_dir()), reverse=True):
                with suppress(OSError):
                    group.rmdir()
