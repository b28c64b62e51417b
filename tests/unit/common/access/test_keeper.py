"""AccessKeeper: who a header belongs to, what guesses cost, and a file that changes."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tandemmq.common.access.attempts import OF_ALL, PER_USER_AND_ADDRESS
from tandemmq.common.access.errors import AccessFileError, TooManyAttempts, Unauthenticated
from tandemmq.common.access.file import read_text
from tandemmq.common.access.keeper import AccessKeeper
from tandemmq.common.access.needs import publish
from tandemmq.common.access.scrypt import GENERATED, fits, hash_secret
from tandemmq.common.identity.credentials import authorization

PEER = "ipv4:10.0.0.1:5000"
HASHES = {secret: hash_secret(secret, GENERATED) for secret in ("right", "other")}


def text_of(*users: str, secret: str = "right", role: str = "viewer") -> str:
    return "".join(f'[users.{user}]\nsecret = "{HASHES[secret]}"\nroles = ["{role}"]\n' for user in users)


def header(user: str, secret: str) -> str:
    return authorization(user, secret)[1]


class Comparing:
    """Counts comparisons, and can hold them up."""

    def __init__(self) -> None:
        self.hashes: list[str] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, secret: str, text: str) -> bool:
        self.hashes.append(text)
        assert self.go.wait(20)
        return fits(secret, text)


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Kit:
    """A keeper of a real file, with what is handed in."""

    def __init__(self, directory: Path, text: str) -> None:
        self.path = directory / "access.toml"
        self.path.write_text(text)
        self.compare, self.clock = Comparing(), Clock()
        self.keeper = AccessKeeper(self.path, clock=self.clock, compare=self.compare)

    async def refused(self, user: str, secret: str, peer: str = PEER) -> Unauthenticated:
        with pytest.raises(Unauthenticated) as error:
            await self.keeper.authenticate(header(user, secret), peer)
        return error.value


async def test_who_knows_the_secret_is_known_from_then_on_without_waiting(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    right = header("alice", "right")
    assert kit.keeper.known(right) is None
    alice = await kit.keeper.authenticate(right, PEER)
    assert alice.name == "alice"
    assert kit.keeper.known(right) is alice
    assert await kit.keeper.authenticate(right, "ipv4:10.9.9.9:1") is alice
    assert len(kit.compare.hashes) == 1


async def test_no_header_and_nonsense_cost_nothing(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    with pytest.raises(Unauthenticated, match="no credentials"):
        await kit.keeper.authenticate(None, PEER)
    with pytest.raises(Unauthenticated, match="not of the form"):
        await kit.keeper.authenticate("Bearer x", PEER)
    assert kit.compare.hashes == []


async def test_a_wrong_secret_is_refused_and_the_same_header_again_costs_nothing(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    for _ in range(100):
        error = await kit.refused("alice", "wrong")
        assert type(error) is Unauthenticated
        assert "wrong" not in error.explain()
        assert error.user == "alice"
    assert len(kit.compare.hashes) == 1
    assert (await kit.keeper.authenticate(header("alice", "right"), PEER)).name == "alice"


async def test_an_unknown_user_costs_a_comparison_and_says_the_same(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    unknown = await kit.refused("mallory", "right")
    assert kit.compare.hashes == [HASHES["right"]]
    wrong = await kit.refused("alice", "wrong")
    assert unknown.explain().replace("mallory", "alice") == wrong.explain()


async def test_a_user_with_a_certificate_alone_has_no_secret_that_fits(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice") + '[users.cert]\ncertificate = "cert.example"\n')
    await kit.refused("cert", "right")
    assert (await kit.keeper.authenticate(None, PEER, ["cert.example"])).name == "cert"
    with pytest.raises(Unauthenticated, match="nobody\\.example"):
        await kit.keeper.authenticate(None, PEER, ["nobody.example"])


async def test_guesses_are_held_up_and_cost_nothing_then(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    for n in range(int(PER_USER_AND_ADDRESS.burst)):
        assert type(await kit.refused("alice", f"guess{n}")) is Unauthenticated
    compared = len(kit.compare.hashes)
    for n in range(200):
        held_up = await kit.refused("alice", f"further{n}")
        assert isinstance(held_up, TooManyAttempts)
        assert held_up.retry_after == 10
        assert "10 s" in held_up.explain()
    assert len(kit.compare.hashes) == compared
    assert isinstance(await kit.refused("alice", "right"), TooManyAttempts), "even the right one: it is not looked at"
    assert (await kit.keeper.authenticate(header("alice", "right"), "ipv4:10.0.0.2:1")).name == "alice"
    assert (await kit.keeper.authenticate(header("alice", "right"), PEER)).name == "alice", "known by now"
    kit.clock.now += 11
    assert type(await kit.refused("alice", "another")) is Unauthenticated


async def test_guesses_from_everywhere_are_held_up(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    errors = [await kit.refused("alice", f"guess{n}", f"ipv4:10.0.1.{n}:1") for n in range(100)]
    assert len(kit.compare.hashes) == OF_ALL.burst
    assert sum(isinstance(error, TooManyAttempts) for error in errors) == 100 - OF_ALL.burst


async def test_many_who_are_right_all_get_in_one_after_the_other(tmp_path: Path) -> None:
    users = [f"user{n}" for n in range(60)]
    kit = Kit(tmp_path, text_of(*users))
    found = await asyncio.gather(*(kit.keeper.authenticate(header(user, "right"), PEER) for user in users))
    assert [one.name for one in found] == users


async def test_calls_with_one_header_at_once_are_one_comparison_and_the_loop_goes_on(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    kit.compare.go.clear()
    right = header("alice", "right")
    callers = [asyncio.create_task(kit.keeper.authenticate(right, PEER)) for _ in range(50)]
    while not kit.compare.hashes:
        await asyncio.sleep(0.001)  # turns of the loop, while a comparison is held up in its thread
    callers[0].cancel()
    kit.compare.go.set()
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(not isinstance(one, BaseException) and one.name == "alice" for one in found[1:])
    assert len(kit.compare.hashes) == 1


async def test_a_changed_file_is_taken_over_and_known_headers_stay_known(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice", "bob"))
    for user in ("alice", "bob"):
        await kit.keeper.authenticate(header(user, "right"), PEER)
    kit.path.write_text(text_of("alice", role="operator") + text_of("bob", secret="other"))
    kit.keeper.refresh()
    alice = kit.keeper.known(header("alice", "right"))
    assert alice is not None
    assert alice.may(publish("t"))
    assert kit.keeper.known(header("bob", "right")) is None, "bob has another secret"
    await kit.refused("bob", "right")
    assert (await kit.keeper.authenticate(header("bob", "other"), PEER)).name == "bob"
    kit.path.write_text(text_of("bob", secret="other"))
    kit.keeper.refresh()
    await kit.refused("alice", "right")


async def test_a_secret_that_was_wrong_is_right_when_the_file_says_so(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    await kit.refused("alice", "other")
    await kit.refused("bob", "right")
    kit.path.write_text(text_of("alice", secret="other") + text_of("bob"))
    kit.keeper.refresh()
    assert (await kit.keeper.authenticate(header("alice", "other"), PEER)).name == "alice"
    assert (await kit.keeper.authenticate(header("bob", "right"), PEER)).name == "bob"


async def test_a_session_goes_on_with_what_the_file_says_now(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    alice = await kit.keeper.authenticate(header("alice", "right"), PEER)
    kit.path.write_text(text_of("alice", role="operator"))
    kit.keeper.refresh()
    assert kit.keeper.current(alice).roles == ("operator",)
    for text in (text_of("alice", secret="other"), text_of("bob")):
        kit.path.write_text(text)
        kit.keeper.refresh()
        with pytest.raises(Unauthenticated, match="alice was removed, or has another secret"):
            kit.keeper.current(alice)


@pytest.mark.parametrize("broken", ["[users.alice\n", "[users.alice]\nsecret = 'plain'\n", "", None])
async def test_a_broken_file_keeps_the_last_good_one(
    tmp_path: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    if broken is None:
        kit.path.unlink()
    else:
        kit.path.write_text(broken)
    for _ in range(3):
        kit.keeper.refresh()
    complaints = [record for record in caplog.records if "cannot be used" in record.getMessage()]
    if broken == "":  # good, and nobody is in it
        assert not complaints
        await kit.refused("alice", "right")
        return
    assert len(complaints) == 1, "said once"
    assert kit.keeper.problem
    assert (await kit.keeper.authenticate(header("alice", "right"), PEER)).name == "alice"
    kit.path.write_text(text_of("bob"))
    kit.keeper.refresh()
    assert not kit.keeper.problem
    await kit.refused("alice", "right")


async def test_a_start_with_a_broken_file_fails(tmp_path: Path) -> None:
    path = tmp_path / "access.toml"
    with pytest.raises(AccessFileError, match="No such file"):
        AccessKeeper(path)
    path.write_text("nonsense\n= 1\n")
    with pytest.raises(AccessFileError, match="line 1"):
        AccessKeeper(path)


async def test_changes_are_seen_whatever_the_clock_of_the_files_says(tmp_path: Path) -> None:
    """A change within one tick of the file system's clock, of the same length: it is read once more to be sure."""
    reads = 0

    def read(path: Path) -> str:
        nonlocal reads
        reads += 1
        return read_text(path)

    path = tmp_path / "access.toml"
    path.write_text(text_of("alice"))
    keeper = AccessKeeper(path, read=read)

    def changed() -> bool:
        return keeper.changed

    assert changed()
    keeper.refresh()
    assert not changed(), "read twice, the same both times"
    assert reads == 2
    os.replace(_written(tmp_path / "new", text_of("bobby")), path)
    assert changed()
    keeper.refresh()
    assert set(keeper.table.principals) == {"bobby"}
    assert changed(), "once more"
    keeper.refresh()
    assert not changed()
    path.unlink()
    assert changed()


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


async def test_it_looks_by_itself(tmp_path: Path) -> None:
    kit = Kit(tmp_path, text_of("alice"))
    kit.keeper.start()
    os.replace(_written(tmp_path / "new", text_of("bob")), kit.path)
    async with asyncio.timeout(60):
        while "bob" not in kit.keeper.table.principals:
            await asyncio.sleep(0.05)
    await kit.keeper.close()
    assert set(kit.keeper.table.principals) == {"bob"}


async def test_a_file_that_others_may_change_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "access.toml"
    path.write_text("")
    for mode, told in ((0o600, 0), (0o640, 0), (0o660, 1), (0o602, 2)):
        path.chmod(mode)
        await AccessKeeper(path).close()
        assert caplog.text.count("can be changed by others") == told
