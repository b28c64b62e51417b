"""Puts a Debian package together: the broker with all that it needs but Python itself, units, and settings.

    python tools/build_deb.py [--into dist]

It is for this machine's processor, and for the version of Python that runs this, which must be Debian's own on the
machines it is meant for: 3.11 is Debian 12's. The wheel is that of tools/build_wheels.py, in the same directory. Needs
dpkg-deb.
"""

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = "usr/lib/tandemmq"
"""Of the virtual environment, from the root of the file system."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names."""

_INSTALLED = "/opt/tandemmq"
"""Where the units of deploy/systemd have it."""
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_NEXT_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor + 1}"

_CONTROL = """\
Package: tandemmq
Version: {version}
Architecture: {architecture}
Maintainer: The TandemMQ authors
Depends: python3 (>= {python}), python3 (<< {next_python}), libc6 (>= 2.28), adduser
Section: net
Priority: optional
Installed-Size: {kilobytes}
Description: durable message broker with the files and protocols of Apache RocketMQ
 The broker, its command `tandem`, systemd units, and settings in /etc/tandemmq.
 Nothing is started by itself; tandem-store, tandem-metasync and
 tandem-replicator make a node.
"""


class Unpackable(Exception):
    """Something is missing that the package is made of."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="directory of the wheel and the package")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deb-") as name:
        root = Path(name) / "root"
        install(root / HOME, wheel_in(given.into))
        add_files(root)
        print(pack(root, given.into))


def wheel_in(directory: Path) -> Path:
    """The one for this machine. Raises Unpackable."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    found = sorted(directory.glob(f"tandemmq-*-{tag}-{tag}-*_{platform.machine()}.whl"))
    if not found:
        raise Unpackable(f"there is no wheel for this Python and processor in {directory}: run tools/build_wheels.py")
    return found[-1]


def install(home: Path, wheel: Path) -> None:
    """Makes the environment, which will live elsewhere with another Python of the same version."""
    venv.create(home, with_pip=False, symlinks=True)
    wanted = ("--from", "pyproject.toml", "--extra", "server")
    subprocess.run([sys.executable, "tools/install_pinned.py", str(home), *wanted], cwd=ROOT, check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-compile", "--no-index", str(wheel)], check=True)
    shutil.rmtree(home / "bin")
    shutil.rmtree(home / "include", ignore_errors=True)
    (home / "bin").mkdir()
    for name in ("python", "python3"):
        (home / "bin" / name).symlink_to("/usr/bin/python3")
    (home / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {_PYTHON}\n")
    command = home / "bin" / "tandem"
    command.write_text(f"#!/{HOME}/bin/python3\nfrom tandemmq.cli.main import main\n\nmain()\n")
    command.chmod(0o755)


def add_files(root: Path) -> None:
    """The command, units, settings, documents, and what dpkg runs."""
    (root / "usr" / "bin").mkdir()
    (root / "usr" / "bin" / "tandem").symlink_to("../lib/tandemmq/bin/tandem")
    units = root / "lib" / "systemd" / "system"
    units.mkdir(parents=True)
    for unit in (ROOT / "deploy" / "systemd").glob("*.service"):
        (units / unit.name).write_text(unit.read_text().replace(_INSTALLED, f"/{HOME}"))
    settings, documents = root / "etc" / "tandemmq", root / "usr" / "share" / "doc" / "tandemmq"
    settings.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "conf" / "single.conf", settings / "broker.conf")
    shutil.copy(ROOT / "deploy" / "conf" / "single-admin.conf", settings / "admin.conf")
    shutil.copytree(ROOT / "deploy" / "conf", documents / "examples")
    shutil.copy(ROOT / "LICENSE", documents / "copyright")
    shutil.copytree(ROOT / "deploy" / "debian", root / "DEBIAN")
    for script in ("postinst", "prerm"):
        (root / "DEBIAN" / script).chmod(0o755)
    (root / "DEBIAN" / "conffiles").write_text("/etc/tandemmq/broker.conf\n/etc/tandemmq/admin.conf\n")


def pack(root: Path, into: Path) -> Path:
    """The package's file."""
    version = debian_version(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    architecture = ARCHITECTURES[platform.machine()]
    size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())
    control = _CONTROL.format(
        version=version, architecture=architecture, python=_PYTHON, next_python=_NEXT_PYTHON, kilobytes=size // 1024
    )
    (root / "DEBIAN" / "control").write_text(control)
    into.mkdir(parents=True, exist_ok=True)
    package = into / f"tandemmq_{version}_{architecture}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--build", root, package], check=True)
    return package


def debian_version(version: str) -> str:
    """So that a version before a release sorts before it: `0.2.0~dev0`."""
    return re.sub(r"\.(dev|a|b|rc)(?=\d)", r"~\1", version)


if __name__ == "__main__":
    main()
