"""The static files: short, complete, and without anything that makes markup of text."""

import re
from pathlib import Path

import pytest

from tandemmq.admin.console.files import Files

STATIC = Path(__file__).resolve().parents[4] / "services" / "admin" / "console" / "static"
SCRIPTS = sorted(STATIC.rglob("*.js"))

LINES_MAX = 400
WIDTH_MAX = 160

FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    r"|DOMParser|srcdoc"
)
ELSEWHERE = re.compile(r"""["'(]https?://(?!www\.w3\.org/)""")


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 20


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_short_and_says_what_it_is_about(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("/**")
    assert len(text.splitlines()) <= LINES_MAX
    assert max(map(len, text.splitlines())) <= WIDTH_MAX
    assert not FORBIDDEN.search(text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_a_script_imports_is_there(path: Path) -> None:
    text = path.read_text()
    for names, source in re.findall(r'import \{([^}]*)\} from "([^"]+)"', text):
        imported = (path.parent / source).resolve()
        assert imported.is_file(), source
        exported = set(re.findall(r"export (?:async )?(?:function\*?|const|class) (\w+)", imported.read_text()))
        wanted = {name.strip() for name in names.split(",") if name.strip()}
        assert wanted <= exported, source
        body = text.replace(names, "", 1)
        unused = {name for name in wanted if not re.search(rf"\b{name}\b", body)}
        assert not unused


def test_nothing_comes_from_elsewhere() -> None:
    for path in STATIC.rglob("*"):
        if path.is_file():
            assert not ELSEWHERE.search(path.read_text()), path.name
    assert "url(" not in (STATIC / "app.css").read_text()


def test_the_index_names_files_that_exist_and_has_no_inline_code() -> None:
    files = Files()
    index = files.index.body.decode()
    named = re.findall(r'(?:href|src)="/static/(\w+)/([^"]+)"', index)
    assert len(named) > 5
    for version, name in named:
        assert files.get(version, name) is not None, name
    assert "@VERSION@" not in index
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", index)


def test_the_version_changes_with_the_files(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("@VERSION@")
    first = Files(tmp_path)
    (tmp_path / "x.js").write_text("1")
    second = Files(tmp_path)
    assert first.version != second.version
    assert second.get(second.version, "x.js") is not None
    assert second.get(first.version, "x.js") is None
    assert second.index.body.decode() == second.version
