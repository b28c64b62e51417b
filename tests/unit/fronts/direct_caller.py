"""A caller at the edge, for short ways that are tried without a transport."""

from dataclasses import dataclass, field

import grpc


@dataclass
class DirectCaller:
    """What the transport would do for a call is written down (`grpc_transport.DirectCall`)."""

    address: str = "ipv4:127.0.0.1:5"
    headers: tuple[tuple[str, str], ...] = (("x-mq-client-id", "one"), ("x-mq-language", "JAVA"))
    has_room: bool = True
    gone: bool = False
    answers: list[bytes] = field(default_factory=list)
    handed_over: list[bytes] = field(default_factory=list)
    ended: list[tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]] = field(default_factory=list)

    @property
    def later(self) -> bytes | None:
        """The answer, if there is one by now."""
        return self.answers[-1] if self.answers else None

    def peer(self) -> str:
        return self.address

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self.headers

    def answer_later(self, answer: bytes) -> None:
        self.answers.append(answer)

    def hand_over(self, message: bytes) -> None:
        self.handed_over.append(message)

    def end_with(self, code: grpc.StatusCode, details: str, trailing: tuple[tuple[str, str], ...]) -> None:
        self.ended.append((code, details, trailing))
