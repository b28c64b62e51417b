"""The programs of docs/client.md print what it says, in its order, against one store."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tandemmq.client import Producer
from tests.contract.store_process import StoreProcess

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "client.md"
PROGRAM = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)

ANY_ORDER = "billing"
"""In the program whose messages lie in two queues."""
LATER = "send_after"


def programs(address: str) -> list[tuple[str, str]]:
    """Each program, and what it prints; nothing is said of the worker."""
    return [(text.replace("127.0.0.1:8081", address), said) for text, said in PROGRAM.findall(DOCUMENT.read_text())]


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


def test_the_program_that_sends_for_later(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        ((program, said),) = (one for one in programs(store.address) if LATER in one[0])
        assert printed(program) == said.splitlines()


def printed(program: str) -> list[str]:
    """The lines that a program prints."""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
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
