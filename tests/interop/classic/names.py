"""A name server's one answer that clients need: the route of a topic, which is always the same broker."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tandemmq.common.made_certificate import made_context
from tandemmq.common.wire.remoting.codec import decode, encode
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrameReader

QUEUES = 4
"""Of every topic but those of groups."""


@contextmanager
def names(broker: str, cluster: str, port: int, *, tls: bool = False) -> Iterator[str]:
    """Answers for one broker; gives `host:port` of the name server. Clients speak TLS with all servers or with none."""
    context = made_context() if tls else None

    def route(topic: str) -> bytes:
        queues = 1 if topic.startswith("%") or topic.endswith("_REPLY_TOPIC") else QUEUES
        numbers = {"readQueueNums": queues, "writeQueueNums": queues, "perm": 6, "topicSysFlag": 0}
        addresses = {"0": f"127.0.0.1:{port}"}
        return json.dumps(
            {
                "brokerDatas": [{"brokerAddrs": addresses, "brokerName": broker, "cluster": cluster}],
                "filterServerTable": {},
                "queueDatas": [{"brokerName": broker, **numbers}],
            }
        ).encode()

    def answer(request: Command) -> Command:
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return request.answer(body=route((request.fields or {})["topic"]))
        return request.answer(3, remark=f" request type {request.code} not supported")

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            reader = RemotingFrameReader()
            peer = self.request if context is None else context.wrap_socket(self.request, server_side=True)
            with peer, suppress(OSError):  # a client that ends closes nothing
                while data := peer.recv(1 << 16):
                    for frame in reader.receive(data):
                        peer.sendall(encode(answer(decode(frame))))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="names", daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
