"""The programs of docs/client.md print what it says, in its order, against one store."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tandemmq.client import Producer
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "client.md"
PROGRAM = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)

ANY_ORDER = "billing"
"""In the program whose messages lie in two queues."""
LATER = "send_after"
COMMAND = "tandem worker orders:handle kitchen orders --concurrency 4"
"""As the page has it."""


def programs(address: str) -> list[tuple[str, str]]:
    """Each program, and what it prints; nothing is said of the worker."""
    return [(text.replace("127.0.0.1:8081", address), said) for text, said in PROGRAM.findall(DOCUMENT.read_text())]


@pytest.mark.timeout(600)
def test_the_programs_print_what_the_page_says(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        found = [one for one in programs(store.address) if LATER not in one[0]]
        for program, said in found:
            if not said:
                check_worker(program, store, tmp_path)
            elif ANY_ORDER in program:
                assert sorted(printed(program)) == sorted(said.splitlines()), program
            else:
                assert printed(program) == said.splitlines(), program
        assert len(found) == 6


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_program_that_sends_for_later(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        ((program, said),) = (one for one in programs(store.address) if LATER in one[0])
        assert printed(program) == said.splitlines()


def printed(program: str) -> list[str]:
    """The lines that a program prints."""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, f"{program}\n{found.stderr}"
    return found.stdout.splitlines()


def check_worker(program: str, store: StoreProcess, directory: Path) -> None:
    """The worker handles what is sent, and ends in order when it is told to."""
    (directory / "orders.py").write_text(program)
    command = [sys.executable, "orders.py", store.address]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            with Producer(store.address) as producer:
                producer.send("orders", "a cake")
            made = ""  # handlers run in threads: a line may begin in the middle of another
            while not all(f"made {one}" in made for one in ("one espresso", "two teas", "a cake")):
                line = process.stdout.readline()
                assert line, f"it has ended behind {made}"
                made += line
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_nothing_is_lost_when_one_worker_is_killed_and_one_hangs(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, ExitStack() as stack:
        (program,) = (text for text, said in programs(store.address) if not said)
        assert f"`{COMMAND}`" in DOCUMENT.read_text()
        (tmp_path / "orders.py").write_text(program)
        by_hand = [sys.executable, "orders.py", store.address]
        by_command = [sys.executable, "-m", "tandemmq.cli.main", *COMMAND.split()[1:], "--address", store.address]
        workers = [
            stack.enter_context(started(command, tmp_path, tmp_path / f"{number}.out"))
            for number, command in enumerate((by_hand, by_hand, by_command))
        ]
        killed, hung, _ = workers
        with Producer(store.address) as producer:

            def all_work() -> bool:
                producer.send("orders", "a start")
                return all(made(tmp_path / f"{number}.out") for number in range(3))

            until(all_work, 60, "each has made something")
            for one in (killed, hung):  # what is given to them now they hold, and do not finish
                os.kill(one.pid, signal.SIGSTOP)
            orders = {f"order {number}" for number in range(200)}
            for order in sorted(orders):
                producer.send("orders", order)
            killed.kill()
            until(
                lambda: orders <= made(tmp_path / "2.out"), 150, lambda: f"{orders - made(tmp_path / '2.out')} are made"
            )
            os.kill(hung.pid, signal.SIGCONT)

            def goes_on() -> bool:
                producer.send("orders", "the last")
                return "the last" in made(tmp_path / "1.out")

            until(goes_on, 60, "who hung works again")
        for one in (hung, workers[2]):
            one.send_signal(signal.SIGTERM)
            assert one.wait(60) == 0


def started(command: list[str], directory: Path, output: Path) -> "Killed":
    """A process that is killed at the end; what it prints goes into a file."""
    with output.open("wb") as stdout:
        return Killed(command, cwd=directory, stdout=stdout)


class Killed(subprocess.Popen[bytes]):
    """Ends with the block, however it is."""

    def __exit__(self, *raised: object) -> None:
        self.kill()
        self.wait(60)


def made(output: Path) -> set[str]:
    """What a worker has made: handlers run in threads, so a line may begin in the middle of another."""
    return set(re.findall(r"made ((?:order \d+|a start|the last))", output.read_text()))
