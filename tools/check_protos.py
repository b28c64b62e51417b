"""Checks that the contracts under protos/ still serve the programs that were built with the last release.

    python tools/check_protos.py --check      says what would break them, and exits with 1
    python tools/check_protos.py --release    writes what protos/ promises now into protos/released.txt

protos/released.txt is the promise as text: a line a field, value and method. What is there must stay: numbers, names,
types, labels, oneofs, streaming; in binary, in JSON (the console speaks it) and in the code that is generated. What is
new may come. A field or enum value may go only if its number and name are reserved, so that nobody uses them again.
"""

import importlib.util
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet

REPOSITORY = Path(__file__).resolve().parents[1]
PROTOS = REPOSITORY / "protos"
RELEASED = PROTOS / "released.txt"

_HEAD = (
    "# What the last release promised: written by tools/check_protos.py --release, read by --check. Not for editing.\n"
)
_TYPES = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}


class Field(NamedTuple):
    """A field of a message, without its number."""

    name: str
    kind: str
    """`int32`, `map<string, int64>`, or the full name of a message or enum."""
    label: str
    """`singular`, `optional` (it is known whether it is set), `repeated`, or the name of its oneof behind `oneof.`."""


class ProtoMethod(NamedTuple):
    """A method of a service, without its name."""

    request: str
    answer: str
    streaming: str
    """`unary`, `requests`, `answers` or `both`: what there can be many of."""


@dataclass
class Reserved:
    """What must not be used (again): ranges of numbers, both ends included, and names."""

    numbers: set[tuple[int, int]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def has(self, number: int, name: str) -> bool:
        """Whether both are reserved."""
        return name in self.names and any(first <= number <= last for first, last in self.numbers)

    def lines(self) -> Iterator[str]:
        """As text."""
        yield from (f"  reserved {first} to {last}" for first, last in sorted(self.numbers))
        yield from (f"  reserved {name}" for name in sorted(self.names))


@dataclass
class ProtoMessage:
    """Fields by number."""

    fields: dict[int, Field] = field(default_factory=dict)
    reserved: Reserved = field(default_factory=Reserved)


@dataclass
class Enum:
    """Names (more than one with an alias) by number."""

    values: dict[int, set[str]] = field(default_factory=dict)
    reserved: Reserved = field(default_factory=Reserved)


@dataclass
class Contract:
    """All that protos/ promise, by full names."""

    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    services: dict[str, dict[str, ProtoMethod]] = field(default_factory=dict)

    def text(self) -> str:
        """One line each; the same contract gives the same text."""
        lines: list[str] = []
        for name, message in sorted(self.messages.items()):
            lines.append(f"message {name}")
            lines += [f"  {number} {one.name} {one.label} {one.kind}" for number, one in sorted(message.fields.items())]
            lines += message.reserved.lines()
        for name, enum in sorted(self.enums.items()):
            lines.append(f"enum {name}")
            lines += [f"  {number} {value}" for number, names in sorted(enum.values.items()) for value in sorted(names)]
            lines += enum.reserved.lines()
        for name, methods in sorted(self.services.items()):
            lines.append(f"service {name}")
            lines += [
                f"  {method} {one.streaming} {one.request} {one.answer}" for method, one in sorted(methods.items())
            ]
        return "\n".join(lines) + "\n"


# -- reading -----------------------------------------------------------------------------------------------------------


def compiled(directory: Path = PROTOS) -> FileDescriptorSet:
    """Descriptors of all contracts below a directory. Raises RuntimeError when one does not compile."""
    import grpc_tools
    from grpc_tools import protoc

    names = sorted(str(path.relative_to(directory)) for path in directory.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "descriptors"
        well_known = Path(grpc_tools.__file__).parent / "_proto"
        paths = [f"--proto_path={directory}", f"--proto_path={well_known}"]
        if protoc.main(["protoc", *paths, f"--descriptor_set_out={target}", *names]) != 0:
            raise RuntimeError(f"a contract under {directory} does not compile")
        return FileDescriptorSet.FromString(target.read_bytes())


def contract_of(descriptors: FileDescriptorSet) -> Contract:
    """What a set of descriptors promises."""
    contract = Contract()
    for file in descriptors.file:
        for message in file.message_type:
            _add_message(contract, f"{file.package}.{message.name}", message)
        for enum in file.enum_type:
            _add_enum(contract, f"{file.package}.{enum.name}", enum)
        for service in file.service:
            contract.services[f"{file.package}.{service.name}"] = {
                method.name: ProtoMethod(
                    method.input_type.lstrip("."),
                    method.output_type.lstrip("."),
                    _streaming(requests=method.client_streaming, answers=method.server_streaming),
                )
                for method in service.method
            }
    return contract


def _streaming(*, requests: bool, answers: bool) -> str:
    return ("both" if answers else "requests") if requests else ("answers" if answers else "unary")


def _add_message(contract: Contract, name: str, message: DescriptorProto) -> None:
    maps = {f".{name}.{one.name}": one for one in message.nested_type if one.options.map_entry}
    for nested in message.nested_type:
        if not nested.options.map_entry:
            _add_message(contract, f"{name}.{nested.name}", nested)
    for enum in message.enum_type:
        _add_enum(contract, f"{name}.{enum.name}", enum)
    fields = {}
    for one in message.field:
        entry = maps.get(one.type_name)
        kind = _kind(one) if entry is None else f"map<{_kind(entry.field[0])}, {_kind(entry.field[1])}>"
        fields[one.number] = Field(one.name, kind, _label(one, message))
    numbers = {(span.start, span.end - 1) for span in message.reserved_range}
    contract.messages[name] = ProtoMessage(fields, Reserved(numbers, set(message.reserved_name)))


def _kind(one: FieldDescriptorProto) -> str:
    return one.type_name.lstrip(".") or _TYPES[one.type]


def _label(one: FieldDescriptorProto, message: DescriptorProto) -> str:
    if one.label == FieldDescriptorProto.LABEL_REPEATED:
        return "repeated"
    if one.proto3_optional:
        return "optional"
    return f"oneof.{message.oneof_decl[one.oneof_index].name}" if one.HasField("oneof_index") else "singular"


def _add_enum(contract: Contract, name: str, enum: EnumDescriptorProto) -> None:
    values: dict[int, set[str]] = {}
    for value in enum.value:
        values.setdefault(value.number, set()).add(value.name)
    numbers = {(span.start, span.end) for span in enum.reserved_range}
    contract.enums[name] = Enum(values, Reserved(numbers, set(enum.reserved_name)))


def parsed(text: str) -> Contract:
    """The contract of which this is the text. Raises ValueError for a line that is none of such a text."""
    contract = Contract()
    kind = name = ""
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        head = re.fullmatch(r"(message|enum|service) (\S+)", line)
        if head is not None:
            kind, name = head.groups()
            if kind == "message":
                contract.messages[name] = ProtoMessage()
            elif kind == "enum":
                contract.enums[name] = Enum()
            else:
                contract.services[name] = {}
            continue
        words = line.split(maxsplit=3)
        if not line.startswith("  ") or not kind:
            raise ValueError(f"not a line of a contract: {line!r}")
        if kind == "service":
            contract.services[name][words[0]] = ProtoMethod(words[2], words[3], words[1])
        elif words[0] == "reserved":
            _reserve((contract.messages if kind == "message" else contract.enums)[name].reserved, words[1:])
        elif kind == "enum":
            contract.enums[name].values.setdefault(int(words[0]), set()).add(words[1])
        else:
            contract.messages[name].fields[int(words[0])] = Field(words[1], words[3], words[2])
    return contract


def _reserve(reserved: Reserved, words: list[str]) -> None:
    """`words`: a name, or two numbers with `to` between them."""
    if len(words) == 1:
        reserved.names.add(words[0])
    else:
        reserved.numbers.add((int(words[0]), int(words[2])))


# -- comparing ---------------------------------------------------------------------------------------------------------


def breaks(old: Contract, new: Contract) -> list[str]:
    """What programs of the old contract would stumble over in the new one, a line each."""
    return [*_broken_messages(old, new), *_broken_enums(old, new), *_broken_services(old, new)]


def _broken_messages(old: Contract, new: Contract) -> Iterator[str]:
    for name, before in old.messages.items():
        after = new.messages.get(name)
        if after is None:
            yield f"message {name} is gone"
            continue
        for number, one in before.fields.items():
            yield from (f"{name}: {said}" for said in _broken_field(number, one, after))
        yield from _freed(name, before.reserved, after.reserved)


def _broken_field(number: int, old: Field, message: ProtoMessage) -> Iterator[str]:
    new = message.fields.get(number)
    elsewhere = next((other for other, one in message.fields.items() if one.name == old.name and other != number), None)
    if elsewhere is not None:
        yield f"field {old.name} had the number {number}, now {elsewhere}"
    elif new is None:
        if not message.reserved.has(number, old.name):
            yield f'field {old.name} = {number} is gone; if it must go: reserved {number}; reserved "{old.name}";'
    elif new.name != old.name:
        yield f"field {number} was called {old.name}, now {new.name}"
    if new is None or new.name != old.name:
        return
    if new.kind != old.kind:
        yield f"field {old.name} = {number} was {old.kind}, now {new.kind}"
    if new.label != old.label and (old.label, new.label) != ("singular", "optional"):
        yield f"field {old.name} = {number} was {old.label}, now {new.label}"


def _broken_enums(old: Contract, new: Contract) -> Iterator[str]:
    for name, before in old.enums.items():
        after = new.enums.get(name)
        if after is None:
            yield f"enum {name} is gone"
            continue
        for number, names in before.values.items():
            for value in sorted(names - after.values.get(number, set())):
                if not after.reserved.has(number, value):
                    yield f"{name}: value {value} = {number} is gone or has another number; if it must go, reserve both"
        yield from _freed(name, before.reserved, after.reserved)


def _freed(name: str, old: Reserved, new: Reserved) -> Iterator[str]:
    """What was reserved, because somebody once used it, must stay so."""
    for first, last in sorted(old.numbers):
        free = first
        for low, high in sorted(new.numbers):
            free = high + 1 if low <= free <= high else free
        if free <= last:
            yield f"{name}: {first} to {last} were reserved, and {free} is not any more"
    for gone in sorted(old.names - new.names):
        yield f"{name}: the name {gone} was reserved, and is not any more"


def _broken_services(old: Contract, new: Contract) -> Iterator[str]:
    for name, methods in old.services.items():
        if name not in new.services:
            yield f"service {name} is gone"
            continue
        for method, before in methods.items():
            after = new.services[name].get(method)
            if after is None:
                yield f"{name}: method {method} is gone"
                continue
            for what, was, now in zip(("request", "answer", "streaming"), before, after, strict=True):
                if was != now:
                    yield f"{name}: {what} of {method} was {was}, now {now}"


def main(arguments: Iterable[str]) -> int:
    """Checks or writes; returns the exit status."""
    wanted = list(arguments)
    if wanted not in (["--check"], ["--release"]):
        print(__doc__, file=sys.stderr)
        return 2
    if importlib.util.find_spec("grpc_tools") is None:  # see tools/generate_protos.py
        print("protos/released.txt: there is no grpcio-tools, nothing was done", file=sys.stderr)
        return 0 if wanted == ["--check"] else 1
    now = contract_of(compiled())
    if wanted == ["--release"]:
        RELEASED.write_text(_HEAD + now.text())
        return 0
    broken = breaks(parsed(RELEASED.read_text()), now)
    for line in broken:
        print(f"protos: {line}", file=sys.stderr)
    if broken:
        print(
            "these break programs of the last release: see docs/CONTRIBUTING.md, Change the contract", file=sys.stderr
        )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
