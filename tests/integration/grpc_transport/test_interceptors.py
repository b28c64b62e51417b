"""Interceptors, generic handlers, and services of libraries that know nothing of the transport."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from tests.grpc_probe import SERVICE
from tests.integration.grpc_transport.hosting import OWN, everything, failure, hosted, in_time, sending, until, within


class Tracing(grpc.aio.ServerInterceptor):
    """Notes what it sees."""

    def __init__(self, name: str, notes: list[Any]) -> None:
        self.name = name
        self.notes = notes

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        self.notes.append((self.name, "in", handler_call_details.method))
        handler = await continuation(handler_call_details)
        self.notes.append((self.name, "out", None if handler is None else handler.request_streaming))
        return handler


class Simple(grpc.aio.ServerInterceptor):
    """Does what a function says with (continuation, details)."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        return await self.function(continuation, handler_call_details)


def intercepted(*interceptors: grpc.aio.ServerInterceptor) -> dict[str, Any]:
    return {"server_options": {"interceptors": interceptors}}


async def test_interceptors_run_in_order_for_calls_of_all_kinds(transport: str) -> None:
    notes: list[Any] = []
    async with hosted(transport, **intercepted(Tracing("one", notes), Tracing("two", notes))) as server:
        for name, request, streaming in (
            ("Echo", b"x", False),
            ("Collect", sending(b"x"), True),
            ("Repeat", b"1:1", False),
            ("Converse", sending(b"x"), True),
        ):
            call = server.method(name)(request)
            await within(call if name in ("Echo", "Collect") else everything(call))
            path = f"/{SERVICE}/{name}"
            seen = [("one", "in", path), ("two", "in", path), ("two", "out", streaming), ("one", "out", streaming)]
            assert notes == seen
            notes.clear()


async def test_large_and_many_messages_behind_an_interceptor(transport: str) -> None:
    async with hosted(transport, **intercepted(Tracing("one", []))) as server:
        message = b"x" * (3 << 20)
        assert await within(server.method("Echo")(message)) == message
        many = [b"%d" % number for number in range(1000)]
        assert await within(everything(server.method("Converse")(sending(*many)))) == many


async def test_an_interceptor_sees_the_callers_metadata(transport: str) -> None:
    seen: list[Any] = []

    async def look(continuation: Any, details: Any) -> Any:
        seen.append({entry.key: entry.value for entry in details.invocation_metadata})
        return await continuation(details)

    async with hosted(transport, **intercepted(Simple(look))) as server:
        await server.method("Echo")(b"", metadata=(("x-token", "t"), ("x-raw-bin", b"\x00")))
    assert (seen[0]["x-token"], seen[0]["x-raw-bin"]) == ("t", b"\x00")


def refusing(code: grpc.StatusCode) -> "grpc.RpcMethodHandler[Any, Any]":
    async def refuse(_request: Any, context: Any) -> None:
        await context.abort(code, "no entry", (("x-by", "interceptor"),))

    return grpc.unary_unary_rpc_method_handler(refuse)


async def test_an_interceptor_may_refuse_by_another_handler(transport: str) -> None:
    async def guard(continuation: Any, details: Any) -> Any:
        if ("x-token", "good") in tuple(details.invocation_metadata):
            return await continuation(details)
        return refusing(grpc.StatusCode.UNAUTHENTICATED)

    async with hosted(transport, **intercepted(Simple(guard))) as server:
        assert await server.method("Echo")(b"x", metadata=(("x-token", "good"),)) == b"x"
        error = await failure(server.method("Echo")(b"x"))
        assert (error.code(), error.details()) == (grpc.StatusCode.UNAUTHENTICATED, "no entry")
        assert dict(error.trailing_metadata())["x-by"] == "interceptor"


async def test_an_interceptor_may_wrap_the_handler(transport: str) -> None:
    async def wrap(continuation: Any, details: Any) -> Any:
        handler = await continuation(details)

        async def wrapped(request: Any, context: Any) -> Any:
            return b"<" + await handler.unary_unary(request, context) + b">"

        return grpc.unary_unary_rpc_method_handler(wrapped, handler.request_deserializer, handler.response_serializer)

    async with hosted(transport, **intercepted(Simple(wrap), Simple(wrap))) as server:
        assert await server.method("Echo")(b"x") == b"<<x>>"


async def test_an_interceptor_may_answer_for_what_is_no_method(transport: str) -> None:
    async def everywhere(continuation: Any, details: Any) -> Any:
        async def answer(_request: Any, _context: Any) -> bytes:
            return str(details.method).encode()

        return await continuation(details) or grpc.unary_unary_rpc_method_handler(answer)

    async with hosted(transport, **intercepted(Simple(everywhere))) as server:
        assert await server.channel.unary_unary("/no.Such/Method")(b"") == b"/no.Such/Method"
        assert await server.method("Echo")(b"x") == b"x"


async def test_unknown_methods_pass_interceptors_and_stay_unknown(transport: str) -> None:
    notes: list[Any] = []
    async with hosted(transport, **intercepted(Tracing("one", notes))) as server:
        assert (await failure(server.channel.unary_unary("/no/x")(b""))).code() is grpc.StatusCode.UNIMPLEMENTED
    assert notes == [("one", "in", "/no/x"), ("one", "out", None)]


async def test_an_exception_in_an_interceptor_fails_the_call_only(transport: str) -> None:
    async def broken(continuation: Any, details: Any) -> Any:
        if details.method.endswith("Echo"):
            raise KeyError("secret")
        return await continuation(details)

    async with hosted(transport, **intercepted(Simple(broken))) as server:
        error = await failure(server.method("Echo")(b"x", timeout=60))
        assert error.code() is grpc.StatusCode.UNKNOWN
        assert ("secret" in str(error.details())) == (transport == "grpcio")
        assert await server.method("Count")(b"")


async def test_an_interceptor_may_take_its_time(transport: str) -> None:
    async def slow(continuation: Any, details: Any) -> Any:
        await asyncio.sleep(0.05)
        return await continuation(details)

    async with hosted(transport, **intercepted(Simple(slow))) as server:
        assert await asyncio.gather(*(server.method("Echo")(b"%d" % n) for n in range(20))) == [
            b"%d" % n for n in range(20)
        ]
        assert await within(server.method("Collect")(sending(b"a", b"b"))) == b"a|b"


async def test_a_deadline_while_an_interceptor_waits(transport: str) -> None:
    seen: list[str] = []
    begun = asyncio.Event()

    async def stuck(continuation: Any, details: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def attempt(seconds: float) -> bool:
        async with hosted(transport, **intercepted(Simple(stuck))) as server:
            error = await failure(server.method("Echo")(b"x", timeout=seconds))
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if begun.is_set():
                await until(lambda: seen == ["cancelled"])
        return bool(seen)

    await in_time(attempt)


async def test_what_is_no_interceptor_is_refused_at_once(transport: str) -> None:
    with pytest.raises(ValueError, match="nterceptor"):
        async with hosted(transport, **intercepted(object())):  # type: ignore[arg-type]
            pass


# ------------------------------------------------------------------------------------------------- generic handlers


class Catalogue(grpc.GenericRpcHandler):
    """Decides for each call by its path and metadata."""

    def service(self, handler_call_details: Any) -> "grpc.RpcMethodHandler[Any, Any] | None":
        path: str = handler_call_details.method
        if not path.startswith("/any/"):
            return None

        async def unary(request: bytes, _context: Any) -> bytes:
            metadata = dict(handler_call_details.invocation_metadata)
            return path.encode() + b" " + request + b" " + str(metadata.get("x-a", "")).encode()

        async def both(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
            async for request in requests:
                yield request * 2

        if path.endswith("both"):
            return grpc.stream_stream_rpc_method_handler(both)
        return grpc.unary_unary_rpc_method_handler(unary)


async def test_a_generic_handler_chooses_for_each_call(transport: str) -> None:
    async with hosted(transport, prepare=lambda server: server.add_generic_rpc_handlers((Catalogue(),))) as server:
        call = server.channel.unary_unary("/any/thing")
        assert await call(b"x", metadata=(("x-a", "first"),)) == b"/any/thing x first"
        assert await call(b"y", metadata=(("x-a", "second"),)) == b"/any/thing y second"
        assert await everything(server.channel.stream_stream("/any/both")(sending(b"a"))) == [b"aa"]
        assert (await failure(server.channel.unary_unary("/other/x")(b""))).code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_first_generic_handler_that_knows_a_method_takes_it(transport: str) -> None:
    def named(name: bytes) -> grpc.GenericRpcHandler:
        async def answer(_request: bytes, _context: Any) -> bytes:
            return name

        return grpc.method_handlers_generic_handler("any", {"thing": grpc.unary_unary_rpc_method_handler(answer)})

    def prepare(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((named(b"one"), named(b"two")))
        server.add_generic_rpc_handlers((Catalogue(),))

    async with hosted(transport, prepare=prepare) as server:
        assert await server.channel.unary_unary("/any/thing")(b"") == b"one"
        assert (await server.channel.unary_unary("/any/more")(b"")).startswith(b"/any/more")


async def test_registered_handlers_go_before_generic_ones(transport: str) -> None:
    async def generic(_request: bytes, _context: Any) -> bytes:
        return b"generic"

    async def registered(_request: bytes, _context: Any) -> bytes:
        return b"registered"

    def prepare(server: grpc.aio.Server) -> None:
        handler: Any = grpc.unary_unary_rpc_method_handler(generic)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("any", {"thing": handler}),))
        server.add_registered_method_handlers("any", {"thing": grpc.unary_unary_rpc_method_handler(registered)})

    async with hosted(transport, prepare=prepare) as server:
        assert await server.channel.unary_unary("/any/thing")(b"") == b"registered"


async def test_a_generic_handler_that_raises_fails_the_call_only(transport: str) -> None:
    class Broken(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            if handler_call_details.method == "/any/broken":
                raise KeyError("secret")
            return None

    async with hosted(transport, prepare=lambda server: server.add_generic_rpc_handlers((Broken(),))) as server:
        error = await failure(server.channel.unary_unary("/any/broken")(b"", timeout=60))
        assert error.code() is grpc.StatusCode.UNKNOWN
        assert ("secret" in str(error.details())) == (transport == "grpcio")
        assert await server.method("Echo")(b"lives") == b"lives"


# ------------------------------------------------------------------------------------------------- libraries


async def test_health_check_and_watch(transport: str) -> None:
    servicer = health.aio.HealthServicer()
    async with hosted(
        transport, prepare=lambda server: health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    ) as server:
        stub: Any = health_pb2_grpc.HealthStub(server.channel)
        await servicer.set("x", health_pb2.HealthCheckResponse.SERVING)
        request = health_pb2.HealthCheckRequest(service="x")
        assert (await stub.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
        error = await failure(stub.Check(health_pb2.HealthCheckRequest(service="unknown")))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(request)
        assert (await within(watch.read())).status == health_pb2.HealthCheckResponse.SERVING
        await servicer.set("x", health_pb2.HealthCheckResponse.NOT_SERVING)
        assert (await within(watch.read())).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        assert (await stub.Check(request)).status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_reflection(transport: str) -> None:
    def prepare(server: grpc.aio.Server) -> None:
        reflection.enable_server_reflection([OWN, reflection.SERVICE_NAME, health.SERVICE_NAME], server)

    async with hosted(transport, prepare=prepare) as server:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(server.channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        by_name = reflection_pb2.ServerReflectionRequest(file_containing_symbol=health.SERVICE_NAME)
        listed, described = await within(everything(stub.ServerReflectionInfo(sending(asked, by_name))))
        names = {service.name for service in listed.list_services_response.service}
        assert names == {OWN, reflection.SERVICE_NAME, health.SERVICE_NAME}
        assert described.file_descriptor_response.file_descriptor_proto


async def test_a_limit_on_calls_at_a_time(transport: str) -> None:
    async with hosted(transport, server_options={"maximum_concurrent_rpcs": 2}) as server:
        waiting = [server.method("Wait")(b"") for _ in range(2)]
        await until(lambda: server.probe.active == 2)
        error = await failure(server.method("Echo")(b"x", timeout=60))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        waiting[0].cancel()
        await until(lambda: server.probe.active == 1)

        async def again() -> bytes:
            while True:
                try:
                    return bytes(await server.method("Echo")(b"again"))
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.01)

        assert await within(again()) == b"again"
