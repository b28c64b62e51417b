"""Finding code that knows a layout of bytes: code that takes a field at a number of its own out of some."""

import ast
from collections.abc import Iterable, Iterator

from tests.assertions import dotted

_KERNEL_LOADS = {"byte_at", "short_at", "int_at", "long_at", "put_byte", "put_short", "put_int", "put_long"}


def field_offsets(nodes: Iterable[ast.AST]) -> list[int]:
    """Lines that know a layout, of all the nodes of a module's syntax tree.

    They import `struct`; make a number of a slice; make a `slice`, or a NumPy type of several fields; load at an
    address plus a number in a kernel; or cut at a number what lies mapped, or between two places so far apart.
    """
    return sorted({node.lineno for node in _knowing(nodes)})


def _knowing(nodes: Iterable[ast.AST]) -> Iterator[ast.stmt | ast.expr]:
    for node in nodes:
        imports_struct = (isinstance(node, ast.Import) and any(one.name == "struct" for one in node.names)) or (
            isinstance(node, ast.ImportFrom) and node.module == "struct"
        )
        if imports_struct or (isinstance(node, ast.Call) and _takes_a_field(node)):
            assert isinstance(node, ast.stmt | ast.expr)
            yield node
        elif isinstance(node, ast.Subscript) and _cuts_at_numbers(node):
            yield node


def _takes_a_field(call: ast.Call) -> bool:
    called = dotted(call.func)
    first = call.args[0] if call.args else None
    if called == "int.from_bytes":
        return isinstance(first, ast.Subscript) and not isinstance(first.slice, ast.Constant)
    if called in {"np.dtype", "numpy.dtype"}:
        return isinstance(first, ast.List)
    if called in _KERNEL_LOADS:
        return first is not None and _has_number(first)
    return called == "slice" and bool(call.args) and all(map(_is_number, call.args))


def _cuts_at_numbers(cut: ast.Subscript) -> bool:
    if not isinstance(cut.slice, ast.Slice):
        return False
    edges = [edge for edge in (cut.slice.lower, cut.slice.upper) if edge is not None]
    if isinstance(cut.value, ast.Attribute) and cut.value.attr == "map":
        return any(map(_has_number, edges))
    return len(edges) == 2 and all(isinstance(edge, ast.BinOp) and _has_number(edge) for edge in edges)


def _has_number(place: ast.expr) -> bool:
    return _is_number(place) or (isinstance(place, ast.BinOp) and (_is_number(place.left) or _is_number(place.right)))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
