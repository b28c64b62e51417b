"""Senders: the answers of a streaming call over HTTP, as lines or as a file."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tandemmq.admin.console.errors import describe
from tandemmq.admin.console.json_form import to_json
from tandemmq.common.errors import TandemError


class AnswerSender(ABC):
    """Sends a stream's answers."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._response = web.StreamResponse(headers=self.headers())
        self.begun = False
        """The head has gone: the status says 200, whatever comes."""

    @abstractmethod
    def headers(self) -> Mapping[str, str]:
        """Of the answer."""

    @abstractmethod
    async def send(self, answer: Any) -> None:
        """One answer of the handler."""

    @abstractmethod
    async def nothing(self) -> None:
        """No answer for a while: a sign of life."""

    @abstractmethod
    async def fail(self, error: TandemError) -> web.StreamResponse:
        """The handler ended with an error, after the head of the answer."""

    async def end(self) -> web.StreamResponse:
        """The handler ended well."""
        await self._write(b"")
        await self._response.write_eof()
        return self._response

    async def _write(self, data: bytes) -> None:
        if not self.begun:
            self.begun = True
            await self._response.prepare(self._request)
        await self._response.write(data)


class Lines(AnswerSender):
    """One JSON object a line."""

    def headers(self) -> Mapping[str, str]:
        """Proxies shall not wait for more."""
        return {"Content-Type": "application/x-ndjson", "X-Accel-Buffering": "no"}

    async def send(self, answer: Any) -> None:
        """A line."""
        await self._write(b'{"result":' + to_json(answer).encode("utf-8", "replace") + b"}\n")

    async def nothing(self) -> None:
        """An empty line."""
        await self._write(b"\n")

    async def fail(self, error: TandemError) -> web.StreamResponse:
        """The last line says why."""
        await self._write(json.dumps({"error": describe(error)[1]}).encode() + b"\n")
        return await self.end()


class Zip(AnswerSender):
    """The bytes of a support bundle."""

    def headers(self) -> Mapping[str, str]:
        """For the browser's downloads."""
        return {
            "Content-Type": "application/zip",
            "Content-Disposition": 'attachment; filename="tandem-support.zip"',
        }

    async def send(self, answer: Any) -> None:
        """A piece of the file."""
        await self._write(answer.data)

    async def nothing(self) -> None:
        """A zip file has no place for it."""

    async def fail(self, error: TandemError) -> web.StreamResponse:
        """The connection breaks off."""
        if self._request.transport is not None:
            self._request.transport.abort()  # half a file must not look like a whole one
        return self._response
