"""What lies beside a log: taken away and brought back, so that every round begins with the log alone."""

import shutil
from pathlib import Path


def keep(root: Path, saved: Path) -> None:
    """Copy all but the log."""
    saved.mkdir()
    for path in root.iterdir():
        if path.is_dir() and path.name != "commitlog":
            shutil.copytree(path, saved / path.name)
        elif path.is_file():
            shutil.copy2(path, saved / path.name)


def restore(root: Path, saved: Path) -> None:
    """Make all but the log what it was."""
    for path in root.iterdir():
        if path.name == "commitlog":
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(saved, root, dirs_exist_ok=True)
