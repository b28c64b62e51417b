"""The JSON of RocketMQ's config files and answers, which fastjson writes and strict parsers refuse.

Integer keys stand without quotes, and an object that was written before is a reference: ``{"$ref":"$.table.name"}``.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

# A whole string, or a bare integer where a key stands. Strings come first, so that their content is never touched.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<before>[{,]\s*)(?P<key>-?\d+)(?=\s*:)', re.DOTALL)

_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[(\d+)\]", re.DOTALL)
"""One step of a reference's path: a name, in which special characters are escaped, or an index."""


def loads(data: bytes, *, finite: bool = False) -> dict[str, Any]:
    """The object that the bytes say; bare integer keys become texts, references what they refer to.

    A number that is infinite or none (1e400, NaN) is null, as fastjson writes it; with `finite` it is refused. It may
    stand in files of older stores, which kept what a client said in fields that they did not know.

    Raises:
        ValueError: the bytes are no UTF-8, no JSON, no object (an empty file is none either), have a key twice, or hold
            what cannot be written again: half of a surrogate pair.
    """
    text = data.decode("utf-8-sig")
    number = _finite if finite else _finite_or_none
    try:
        document = _parse(text, number)
    except ValueError:
        document = _parse(_TOKEN.sub(_quoted, text), number)
    if not isinstance(document, dict):
        raise ValueError(f"a JSON object was expected, not {type(document).__name__}")
    if "\\u" in text:
        _check_texts(document)
    return _resolved(document, document) if '"$ref"' in text else document


def dumps(document: dict[str, Any]) -> bytes:
    """The object as RocketMQ lays it out (tabs, no blank after the colon, keys sorted), in standard JSON."""
    return _spaced(document).encode()


def dumps_with(document: dict[str, Any], key: str, entries: Mapping[str, str]) -> bytes:
    """As `dumps` of a document with a table of these entries under `key`, each as `entry_text` makes it."""
    table = ",".join(f"\n\t\t{_line(name)}:{entries[name]}" for name in sorted(entries))
    shown = {name: _deeper(_spaced(value), 1) for name, value in document.items()}
    shown[key] = f"{{{table}\n\t}}" if table else "{}"
    return ("{" + ",".join(f"\n\t{_line(name)}:{shown[name]}" for name in sorted(shown)) + "\n}").encode()


def entry_text(entry: dict[str, Any]) -> str:
    """An entry of a table of a document, for `dumps_with`."""
    return _deeper(_spaced(entry), 2)


def _spaced(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent="\t", separators=(",", ":"), sort_keys=True)


def _deeper(text: str, levels: int) -> str:
    return text.replace("\n", "\n" + "\t" * levels)  # in strings a new line is an escape


def dumps_table(document: dict[str, Any]) -> bytes:
    """The object with one line for each entry of its tables: quick to write when they are large, easy to compare."""
    return ("{\n" + ",\n".join(f"\t{_line(key)}:{_shown(document[key])}" for key in sorted(document)) + "\n}").encode()


def _shown(value: Any) -> str:
    if not isinstance(value, dict) or not any(isinstance(entry, dict) for entry in value.values()):
        return _line(value)
    return "{\n" + ",\n".join(f"\t\t{_line(key)}:{_line(value[key])}" for key in sorted(value)) + "\n\t}"


_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def _parse(text: str, number: Callable[[str], float | None]) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_float=number, parse_constant=number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite_or_none(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _finite(text: str) -> float:
    value = _finite_or_none(text)
    if value is None:
        raise ValueError(f"{text[:80]} is no number that JSON can say")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Nobody writes a key twice: one of them was another key before. Raises ValueError."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} is there twice")
    return made


def _check_texts(document: dict[str, Any]) -> None:
    """Raises ValueError if a text of the document cannot be said in UTF-8."""
    try:
        _line(document).encode()
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise ValueError(f"it holds half of a surrogate pair: \\u{half:04x}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _quoted(match: re.Match[str]) -> str:
    key = match["key"]
    return match[0] if key is None else f'{match["before"]}"{key}"'


def _resolved(value: Any, root: dict[str, Any]) -> Any:
    """The value with its references replaced. Raises ValueError."""
    if isinstance(value, list):
        return [_resolved(item, root) for item in value]
    if not isinstance(value, dict):
        return value
    path = value.get("$ref")
    if len(value) == 1 and isinstance(path, str):
        return _referred(path, root)
    return {key: _resolved(item, root) for key, item in value.items()}


def _referred(path: str, root: dict[str, Any]) -> Any:
    """What a reference from the root refers to; itself without references. Raises ValueError."""
    found: Any = root
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        name, index = step[1], step[2]
        try:
            found = found[re.sub(r"\\(.)", r"\1", name)] if index is None else found[int(index)]
        except (KeyError, IndexError, TypeError):
            break
        at = step.end()
    if not path.startswith("$") or at != len(path) or '"$ref"' in json.dumps(found):
        raise ValueError(f"the reference {path} leads nowhere")
    return found
