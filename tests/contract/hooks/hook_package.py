"""Packages with hooks, installed by pip as a user would: the one of docs/hooks.md, and one that is bad in many ways."""

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "hooks.md"

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "bad-hooks"
version = "1.0"
[project.entry-points."tandemmq.hooks"]
moody = "bad_hooks:Moody"
waits = "bad_hooks:Waits"
nothing = "bad_hooks:Nothing"
broken = "bad_hooks:Broken"
missing = "bad_hooks:Missing"
[tool.setuptools]
py-modules = ["bad_hooks"]
"""

BAD_HOOKS = '''
import sys, time

class Moody:
    """Does what the body says, afterwards."""
    def before_send(self, context):
        if context.body == b"exit before":
            sys.exit(3)

    def after_send(self, context):
        if context.body == b"raise after":
            raise KeyError("after")
        if context.body == b"exit after":
            sys.exit(4)
        if context.body == b"slow":
            time.sleep(0.2)

class Waits:
    async def before_send(self, context): ...
    async def after_send(self, context): ...

class Nothing:
    def before_send(self, context): ...

class Broken:
    def __init__(self):
        raise OSError("no audit file")
'''


def documented() -> dict[str, str]:
    """The files of docs/hooks.md: the code, the project, the setting."""
    text = DOCUMENT.read_text()
    names = {"python": "audit_hook.py", "toml": "pyproject.toml", "ini": "broker.conf"}
    return {name: re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)[0] for kind, name in names.items()}


def installed(sources: Path, into: Path, files: dict[str, str]) -> None:
    """Build and install a package; nothing is fetched."""
    sources.mkdir()
    for name, text in files.items():
        (sources / name).write_text(text)
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", str(into), str(sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
