"""Each kind of change that breaks programs of the last release is found; additions are let through."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet

from tools import generate_protos
from tools.check_protos import RELEASED, breaks, compiled, contract_of, main, parsed

pytestmark = pytest.mark.skipif(importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed")

PROTO = """
syntax = "proto3";
package shop.v1;
service Shop {
  rpc Buy(Order) returns (Receipt);
  rpc Look(Order) returns (stream Receipt);
}
enum Size {
  SIZE_UNSPECIFIED = 0;
  SMALL = 1;
  LARGE = 2;
  reserved 5 to 7;
  reserved "HUGE";
}
message Order {
  message Item { string name = 1; }
  string drink = 1;
  int32 count = 2;
  optional int64 price = 3;
  repeated Item items = 4;
  oneof pay { string card = 5; bool cash = 6; }
  map<string, int64> extras = 7;
  Size size = 8;
  reserved 10, 12 to 14;
  reserved "sugar";
}
message Receipt { string id = 1; }
"""


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorSet:
    """The contract above."""
    directory = tmp_path_factory.mktemp("protos")
    (directory / "shop.proto").write_text(PROTO)
    return compiled(directory)


def order(files: FileDescriptorSet) -> DescriptorProto:
    return next(one for one in files.file[0].message_type if one.name == "Order")


def field_of(files: FileDescriptorSet, name: str) -> FieldDescriptorProto:
    return next(one for one in order(files).field if one.name == name)


def size(files: FileDescriptorSet) -> EnumDescriptorProto:
    return files.file[0].enum_type[0]


def drop_field(files: FileDescriptorSet) -> None:
    order(files).field.remove(field_of(files, "drink"))


def renumber_field(files: FileDescriptorSet) -> None:
    field_of(files, "drink").number = 20


def rename_field(files: FileDescriptorSet) -> None:
    field_of(files, "drink").name = "beverage"


def retype_field(files: FileDescriptorSet) -> None:
    field_of(files, "count").type = FieldDescriptorProto.TYPE_INT64


def retype_map(files: FileDescriptorSet) -> None:
    entry = next(one for one in order(files).nested_type if one.options.map_entry)
    entry.field[1].type = FieldDescriptorProto.TYPE_STRING


def other_message(files: FileDescriptorSet) -> None:
    field_of(files, "items").type_name = ".shop.v1.Receipt"


def swap_numbers(files: FileDescriptorSet) -> None:
    field_of(files, "card").number, field_of(files, "drink").number = 1, 5


def repeat_field(files: FileDescriptorSet) -> None:
    field_of(files, "drink").label = FieldDescriptorProto.LABEL_REPEATED


def single_field(files: FileDescriptorSet) -> None:
    field_of(files, "items").label = FieldDescriptorProto.LABEL_OPTIONAL


def forget_presence(files: FileDescriptorSet) -> None:
    field_of(files, "price").ClearField("proto3_optional")
    field_of(files, "price").ClearField("oneof_index")


def leave_oneof(files: FileDescriptorSet) -> None:
    field_of(files, "card").ClearField("oneof_index")


def rename_oneof(files: FileDescriptorSet) -> None:
    order(files).oneof_decl[0].name = "payment"


def drop_message(files: FileDescriptorSet) -> None:
    files.file[0].message_type.remove(order(files))


def drop_nested_message(files: FileDescriptorSet) -> None:
    order(files).nested_type.remove(next(one for one in order(files).nested_type if one.name == "Item"))


def drop_enum(files: FileDescriptorSet) -> None:
    files.file[0].enum_type.remove(size(files))


def drop_value(files: FileDescriptorSet) -> None:
    size(files).value.pop()


def rename_value(files: FileDescriptorSet) -> None:
    size(files).value[1].name = "TINY"


def renumber_value(files: FileDescriptorSet) -> None:
    size(files).value[1].number = 3


def drop_method(files: FileDescriptorSet) -> None:
    files.file[0].service[0].method.pop()


def drop_service(files: FileDescriptorSet) -> None:
    files.file[0].service.pop()


def other_request(files: FileDescriptorSet) -> None:
    files.file[0].service[0].method[0].input_type = ".shop.v1.Receipt"


def other_answer(files: FileDescriptorSet) -> None:
    files.file[0].service[0].method[0].output_type = ".shop.v1.Order"


def stream_answers(files: FileDescriptorSet) -> None:
    files.file[0].service[0].method[0].server_streaming = True


def stream_no_answers(files: FileDescriptorSet) -> None:
    files.file[0].service[0].method[1].server_streaming = False


def stream_requests(files: FileDescriptorSet) -> None:
    files.file[0].service[0].method[0].client_streaming = True


def free_number(files: FileDescriptorSet) -> None:
    order(files).reserved_range.pop(0)


def free_part_of_a_range(files: FileDescriptorSet) -> None:
    order(files).reserved_range[1].end -= 1


def free_name(files: FileDescriptorSet) -> None:
    order(files).reserved_name.pop()


def free_value_name(files: FileDescriptorSet) -> None:
    size(files).reserved_name.pop()


def free_value_number(files: FileDescriptorSet) -> None:
    size(files).reserved_range.pop()


def rename_package(files: FileDescriptorSet) -> None:
    files.file[0].package = "shop.v2"


def reserve_number_only(files: FileDescriptorSet) -> None:
    drop_field(files)
    order(files).reserved_range.add(start=1, end=2)


def reserve_name_only(files: FileDescriptorSet) -> None:
    drop_field(files)
    order(files).reserved_name.append("drink")


BREAKING: dict[Callable[[FileDescriptorSet], None], str] = {
    drop_field: 'field drink = 1 is gone; if it must go: reserved 1; reserved "drink";',
    renumber_field: "field drink had the number 1, now 20",
    rename_field: "field 1 was called drink, now beverage",
    retype_field: "field count = 2 was int32, now int64",
    retype_map: "field extras = 7 was map<string, int64>, now map<string, string>",
    other_message: "field items = 4 was shop.v1.Order.Item, now shop.v1.Receipt",
    swap_numbers: "field card had the number 5, now 1",
    repeat_field: "field drink = 1 was singular, now repeated",
    single_field: "field items = 4 was repeated, now singular",
    forget_presence: "field price = 3 was optional, now singular",
    leave_oneof: "field card = 5 was oneof.pay, now singular",
    rename_oneof: "field cash = 6 was oneof.pay, now oneof.payment",
    drop_message: "message shop.v1.Order is gone",
    drop_nested_message: "message shop.v1.Order.Item is gone",
    drop_enum: "enum shop.v1.Size is gone",
    drop_value: "value LARGE = 2 is gone",
    rename_value: "value SMALL = 1 is gone",
    renumber_value: "value SMALL = 1 is gone or has another number",
    drop_method: "method Look is gone",
    drop_service: "service shop.v1.Shop is gone",
    other_request: "request of Buy was shop.v1.Order, now shop.v1.Receipt",
    other_answer: "answer of Buy was shop.v1.Receipt, now shop.v1.Order",
    stream_answers: "streaming of Buy was unary, now answers",
    stream_no_answers: "streaming of Look was answers, now unary",
    stream_requests: "streaming of Buy was unary, now requests",
    free_number: "10 to 10 were reserved",
    free_part_of_a_range: "12 to 14 were reserved, and 14 is not",
    free_name: "the name sugar was reserved",
    free_value_name: "the name HUGE was reserved",
    free_value_number: "5 to 7 were reserved",
    rename_package: "message shop.v1.Receipt is gone",
    reserve_number_only: "field drink = 1 is gone",
    reserve_name_only: "field drink = 1 is gone",
}


@pytest.mark.parametrize("change", BREAKING, ids=lambda change: change.__name__)
def test_what_breaks_programs_is_found(
    descriptors: FileDescriptorSet, change: Callable[[FileDescriptorSet], None]
) -> None:
    mutated = FileDescriptorSet.FromString(descriptors.SerializeToString())
    change(mutated)
    said = breaks(contract_of(descriptors), contract_of(mutated))
    assert any(BREAKING[change] in line for line in said), said


def test_what_is_new_is_let_through(descriptors: FileDescriptorSet) -> None:
    grown = FileDescriptorSet.FromString(descriptors.SerializeToString())
    file = grown.file[0]
    order(grown).field.add(name="milk", number=9, type=FieldDescriptorProto.TYPE_BOOL, label=1)
    order(grown).reserved_range.add(start=15, end=20)
    file.message_type.add(name="Cup")
    file.enum_type.add(name="Colour").value.add(name="COLOUR_UNSPECIFIED", number=0)
    size(grown).value.add(name="MEDIUM", number=3)
    file.service[0].method.add(name="Return", input_type=".shop.v1.Receipt", output_type=".shop.v1.Order")
    file.service.add(name="Till")
    field_of(grown, "count").proto3_optional = True
    assert breaks(contract_of(descriptors), contract_of(grown)) == []


def test_what_goes_may_go_when_number_and_name_are_reserved(descriptors: FileDescriptorSet) -> None:
    smaller = FileDescriptorSet.FromString(descriptors.SerializeToString())
    drop_field(smaller)
    order(smaller).reserved_range.add(start=1, end=2)
    order(smaller).reserved_name.append("drink")
    drop_value(smaller)
    size(smaller).reserved_range.add(start=2, end=2)
    size(smaller).reserved_name.append("LARGE")
    assert breaks(contract_of(descriptors), contract_of(smaller)) == []


def test_the_text_says_all_of_it(descriptors: FileDescriptorSet) -> None:
    contract = contract_of(descriptors)
    assert parsed(contract.text()) == contract
    assert "  7 extras repeated map<string, int64>\n" in contract.text()
    assert parsed("# a comment\n" + contract.text()).text() == contract.text()


@pytest.mark.parametrize("text", ["nonsense here\n", "  1 before any message\n"])
def test_a_text_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a line"):
        parsed(text)


def test_a_contract_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "broken.proto").write_text("message {")
    with pytest.raises(RuntimeError, match="does not compile"):
        compiled(tmp_path)


def test_ours_keep_what_was_released(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capfd.readouterr().err
    assert RELEASED.stat().st_size < 200_000
    assert main(["--whatever"]) == 2


def test_without_the_compiler_a_check_says_that_nothing_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with Python 3.14, for which the pinned one has no wheel."""
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    released = RELEASED.read_bytes()
    assert main(["--check"]) == 0
    assert main(["--release"]) == 1
    assert RELEASED.read_bytes() == released
    assert capsys.readouterr().err.count("nothing was done") == 2
    for arguments, status, told in ((["--check"], 0, "not checked"), ([], 1, "not generated")):
        monkeypatch.setattr(sys, "argv", ["generate_protos.py", *arguments])
        assert generate_protos.main() == status
        assert f"protos: {told}, since grpcio-tools is not installed" in capsys.readouterr().err
