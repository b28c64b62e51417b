"""As much of a name server as a pair of RocketMQ brokers needs: it tells the slave where its master is.

RocketMQ 5 forgets the haMasterAddress of its configuration before it starts (5.3.2: the HA client is made after the
address was handed to it), so that a name server is the only way to lead it to a master.
"""

import json
import socketserver
import struct
import threading
from typing import Any

_REGISTER_BROKER, _UNREGISTER_BROKER = 103, 104
_SUCCESS, _NOT_SUPPORTED = 0, 3
_RESPONSE, _ONE_WAY = 1, 2


class NameServer:
    """Listens on a free port of the loopback interface; answers every registration with `ha_address`."""

    def __init__(self, ha_address: str) -> None:
        self.ha_address = ha_address
        names = self

        class NamesConnection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while length := self.rfile.read(4):
                    frame = self.rfile.read(int.from_bytes(length, "big"))
                    size = int.from_bytes(frame[1:4], "big")
                    request: dict[str, Any] = json.loads(frame[4 : 4 + size])
                    answer = names.answer(request)
                    if not request.get("flag", 0) & _ONE_WAY:
                        header = json.dumps(answer).encode()
                        self.wfile.write(struct.pack(">II", 4 + len(header), len(header)) + header)

        class NamesListener(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A broker that was killed."""

        self._listener = NamesListener(("127.0.0.1", 0), NamesConnection)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """host:port, the namesrvAddr of a broker."""
        return f"127.0.0.1:{self._listener.server_address[1]}"

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The header of a response."""
        answer: dict[str, Any] = {"code": _NOT_SUPPORTED, "flag": _RESPONSE, "language": "OTHER", "version": 401}
        answer |= {"opaque": request["opaque"], "serializeTypeCurrentRPC": "JSON"}
        if request["code"] == _REGISTER_BROKER:
            answer |= {"code": _SUCCESS, "extFields": {"haServerAddr": self.ha_address}}
        elif request["code"] == _UNREGISTER_BROKER:
            answer["code"] = _SUCCESS
        return answer

    def start(self) -> None:
        """Listen, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        if self._thread.is_alive():
            self._listener.shutdown()
            self._thread.join(10)
        self._listener.server_close()
