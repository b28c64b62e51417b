"""What `make wheels` and `make deb` make: for which processors it is, what is in it, and that it runs."""

import platform
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.integration.conftest import packaged
from tools import build_deb, build_wheels

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800), pytest.mark.xdist_group("packages")]

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MOST_OF_A_WHEEL = 8_000_000
ASKED = "from tandemmq.store.compiled_core import core_problem; print(core_problem())"


def test_wheels_have_the_core_for_their_processor_and_an_old_c_library(wheels: dict[str, Path], tmp_path: Path) -> None:
    assert set(wheels) == set(build_wheels.MACHINES)
    for machine, wheel in wheels.items():
        modules = build_wheels.check(wheel, machine)
        assert {one.machine for one in modules} == {build_wheels.MACHINES[machine]}
        assert max(one.glibc for one in modules) <= (2, 28)
        assert wheel.stat().st_size < MOST_OF_A_WHEEL
    with pytest.raises(build_wheels.UnfitWheel, match="another processor"):
        build_wheels.check(wheels["aarch64"], "x86_64")
    if platform.machine() in wheels:
        zipfile.ZipFile(wheels[platform.machine()]).extractall(tmp_path)
        asked = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ASKED}"
        assert packaged(sys.executable, "-c", asked).strip() == ""


def test_other_machines_get_one_without_the_core(directory: Path, tmp_path: Path) -> None:
    [wheel] = directory.glob("tandemmq-*-py3-none-any.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    told = packaged(sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ASKED}")
    assert told.strip() == "it is not built for this Python"


@pytest.mark.skipif(not all(map(shutil.which, ("dpkg-deb", "ld"))), reason="no dpkg-deb, or no linker")
@pytest.mark.skipif(platform.machine() not in build_deb.ARCHITECTURES, reason="no name of Debian's for the processor")
def test_the_debian_package_has_all_that_its_units_name(directory: Path, wheels: dict[str, Path]) -> None:
    packaged(sys.executable, ROOT / "tools" / "build_deb.py", "--into", directory)
    [package] = directory.glob("tandemmq_*.deb")
    unpacked = directory / "unpacked"
    packaged("dpkg-deb", "-x", package, unpacked)
    assert {line.split()[1] for line in packaged("dpkg-deb", "-c", package).splitlines()} == {"root/root"}
    assert packaged("dpkg-deb", "-f", package, "Version").strip() == build_deb.debian_version(VERSION)
    packaged("dpkg-deb", "-e", package, unpacked / "DEBIAN")
    for name in ("postinst", "prerm"):
        packaged("sh", "-n", unpacked / "DEBIAN" / name)
    units = sorted((unpacked / "lib" / "systemd" / "system").iterdir())
    assert [path.name for path in units] == [path.name for path in sorted((ROOT / "deploy" / "systemd").iterdir())]
    settings = (unpacked / "DEBIAN" / "conffiles").read_text().split()
    for unit in units:
        [line] = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
        command, *_, config = line.removeprefix("ExecStart=").split()
        assert (unpacked / command.lstrip("/")).is_file()
        assert config in settings
    [packages] = (unpacked / build_deb.HOME).glob("lib/python*/site-packages")
    program = f"import sys; sys.path.insert(0, {str(packages)!r}); {ASKED}"
    assert packaged(sys.executable, "-c", program).strip() == ""


def test_what_comes_before_a_release_sorts_before_it() -> None:
    assert [build_deb.debian_version(one) for one in ("0.2.0.dev0", "0.2.0")] == ["0.2.0~dev0", "0.2.0"]
