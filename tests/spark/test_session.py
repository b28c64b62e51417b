"""Sessions: what they are set to, that tasks run, that a task that dies is tried again, and what fails how."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.running.runner import SparkRunner
from tandemmq.spark.running.shipping import zip_package
from tandemmq.spark.session import SessionFailed, open_session, session_settings
from tests.spark.standalone_cluster import bare_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _where(number: int) -> str:
    import tandemmq

    return f"{number} {sys.executable} {tandemmq.__file__}"


class _DiesOnce:
    """Kills its worker at the first attempt."""

    def __init__(self, place: Path) -> None:
        self._been_here = place / "been_here"

    def __call__(self, number: int) -> str:
        if number == 1 and not self._been_here.exists():
            self._been_here.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return str(number)


def test_tasks_run_with_our_interpreter_and_our_code(session: "SparkSession") -> None:
    import tandemmq

    found = SparkRunner(session).run(_where, 3, "asking")
    assert found == [f"{number} {sys.executable} {tandemmq.__file__}" for number in range(3)]


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_an_attempt_and_no_more(session: "SparkSession", tmp_path: Path) -> None:
    assert SparkRunner(session).run(_DiesOnce(tmp_path), 3, "dying") == ["0", "1", "2"]


def test_times_are_utc_and_nothing_is_drawn(session: "SparkSession") -> None:
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.conf.get("spark.ui.enabled") == "false"
    assert session.sparkContext.uiWebUrl is None
    assert session.conf.get("spark.driver.host") == "127.0.0.1"


def test_settings_given_win() -> None:
    assert session_settings("local[2]", "512m")["spark.driver.memory"] == "512m"
    quick, thorough = (session_settings("local[2]", rows_cross=crossing) for crossing in (False, True))
    assert "TieredStopAtLevel=1" in quick["spark.driver.defaultJavaOptions"]
    assert "TieredStopAtLevel=1" not in thorough["spark.driver.defaultJavaOptions"]


def test_only_a_driver_on_a_loopback_cluster_binds_to_loopback() -> None:
    assert session_settings("spark://127.0.0.1:7077")["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in session_settings("spark://master:7077")
    assert "spark.driver.memory" not in session_settings("sc://master:15002")
    assert "spark.master" not in session_settings(None)


def test_a_master_of_no_known_kind_is_refused() -> None:
    with pytest.raises(BadJobOption, match="mesos://x names no Spark cluster"):
        open_session("mesos://x")


@pytest.mark.parametrize("master", ["sc://127.0.0.1:1", "sc://127.0.0.1:1/;use_ssl=false"])
def test_a_connect_server_that_does_not_answer_is_named_at_once(master: str) -> None:
    with pytest.raises(SessionFailed, match=r"no Spark cluster answers at 127\.0\.0\.1:1"):
        open_session(master)


@pytest.mark.slow
def test_what_java_says_goes_to_the_log(tmp_path: Path) -> None:
    """In a process of its own: a process has one Java."""
    log = tmp_path / "spark.log"
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tandemmq.spark.session import SessionFailed, open_session\n"
        f"log = Path({str(log)!r})\n"
        "try:\n"
        "    open_session('local[1]', log=log, settings={'spark.driver.extraJavaOptions': '-Xss1k'})\n"
        "except SessionFailed as error:\n"
        "    print(error.explain())\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=False)
    assert (told.stderr, told.returncode) == ("", 0)
    assert "Spark does not start" in told.stdout
    assert log.is_file()


@pytest.mark.slow
def test_java_starts_in_a_process_whose_libraries_would_not_survive_a_fork() -> None:
    """Those of grpcio abort now and then: what they ask for at forks must not be done in Java's process."""
    code = (
        "import os\n"
        "from tandemmq.spark.session import open_session\n"
        "os.register_at_fork(after_in_child=os.abort)\n"
        "print(open_session('local[1]').range(7).count())\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=False)
    assert (told.stdout, told.returncode) == ("7\n", 0), told.stderr


def test_what_is_sent_is_the_same_for_the_same_code(tmp_path: Path) -> None:
    first, second = zip_package(tmp_path / "first.zip"), zip_package(tmp_path / "second.zip")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.namelist() == ["tandemmq/__init__.py", "tandemmq/user_cache.py", "tandemmq/package.zip"]


@pytest.mark.slow
def test_what_is_sent_is_unpacked_once_and_imported_from_there(tmp_path: Path) -> None:
    sent = zip_package(tmp_path / "sent.zip")
    python = bare_python(tmp_path / "bare")
    code = (
        "import tandemmq.spark.rebuilding.rebuild_tasks, tandemmq.store.format.record as module\n"
        "import os; print(module.__file__, os.stat(module.__file__).st_ino)"
    )
    environment = {"PATH": os.defpath, "PYTHONPATH": str(sent), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    started = [
        subprocess.Popen([python, "-c", code], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = [process.communicate(timeout=400)[0] for process in started]
    assert told[0]
    assert len(set(told)) == 1
    path, _, _ = told[0].rpartition(" ")
    assert Path(path).is_relative_to(tmp_path / "cache")
    left = [found.name for found in Path(path).parents[3].iterdir()]
    assert left == ["tandemmq"], "nothing half unpacked is left"
