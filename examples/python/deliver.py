"""The proof of the consumer.

It delivers each webhook three times, in shuffled order, to 8 consumers that
fail and die, with 2 workers beside them. In the end each delivery must have
been handled once and in order, or wait for predecessors that were never
delivered.
"""

import argparse
import json
import logging
import random
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection

from consumer import Consumer, Message
from declaration import Declaration
from deliveries import load_deliveries

CONSUMERS = 8
WORKERS = 2
TIMEOUT = 120  # seconds; what isn't done by then is stuck
DECLARATION = Path(__file__).parent.parent / "webhooks-declaration.json"

# Each hits one in ten calls of a handler.
FAULTS = ["throws", "swallows error", "connection cut", "dies"]


class Death(BaseException):
    """Ends a consumer: no `except Exception` holds it up."""


class Tally:
    """Counts, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def add(self, key: str) -> int:
        with self._lock:
            self.counts[key] += 1
            return self.counts[key]


class Proof:
    def __init__(self, name: str, seed: int, messages: list[Message]) -> None:
        schema = f"seqinbox_example_{name}"
        self._create_schema(schema)
        self.conninfo = psycopg.conninfo.make_conninfo(
            options=f"-c search_path={schema} -c statement_timeout={TIMEOUT}s"
        )
        self.messages = messages
        self.document = json.loads(DECLARATION.read_bytes())
        self.declaration = Declaration(self.document)
        self.seed = seed
        self.queue = deque(self._shuffle())
        self.occurred = Tally()
        self._calls = Tally()  # of the handler, by delivery
        self._acknowledged = Tally()

    @staticmethod
    def _create_schema(schema: str) -> None:
        with psycopg.connect() as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS seqinbox")
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            connection.execute("SELECT seqinbox_create_inbox(%s)", (schema,))
            # without a unique key, which would hide what is handled twice
            connection.execute(
                f"CREATE TABLE {schema}.activity (delivery_id uuid NOT NULL,"
                " event text NOT NULL, context_id text, in_order boolean NOT NULL)"
            )

    def _shuffle(self) -> list[Message]:
        """Each message three times, the second soon after the first."""
        places = []
        for message in self.messages:
            first = self.chance("first", message.id)
            second = first + self.chance("second", message.id) / 300
            third = self.chance("third", message.id)
            places += [(place, message) for place in (first, second, third)]
        places.sort(key=lambda item: item[0])
        return [message for _, message in places]

    def chance(self, *what: object) -> float:
        """From 0 to below 1; whichever thread asks, and when, is no matter."""
        return random.Random(repr((self.seed, *what))).random()

    def connect(self) -> Connection:
        return psycopg.connect(self.conninfo, autocommit=True)

    def take(self) -> Message | None:
        try:
            return self.queue.popleft()
        except IndexError:
            return None

    def handle_in_turn(self, connection: Connection, message: Message) -> None:
        """The business of the consumers.

        Whether it is its turn, a handler sees in its own transaction: all that
        it had to wait for must be there.
        """
        rows = connection.execute(
            "SELECT DISTINCT event FROM activity WHERE context_id = %s",
            (message.context_id,),
        )
        handled = {event for event, in rows}
        in_order = not self.declaration.missing(message.type, handled)
        connection.execute(
            "INSERT INTO activity VALUES (%s, %s, %s, %s)",
            (message.id, message.type, message.context_id, in_order),
        )
        time.sleep(0.002)  # let others arrive meanwhile

    def draw_fault(self, message: Message) -> str | None:
        call = self._calls.add(message.id)
        number = int(self.chance("fault", message.id, call) * 10)
        return FAULTS[number] if number < len(FAULTS) else None

    def draw_death(self, message: Message) -> bool:
        count = self._acknowledged.add(message.id)
        return self.chance("death", message.id, count) < 0.2

    def read_activity(self) -> list[tuple[str, bool]]:
        """The id of each message that was handled, and whether in order."""
        with self.connect() as connection:
            return connection.execute(
                "SELECT delivery_id::text, in_order FROM activity"
            ).fetchall()

    def read_due(self) -> list[tuple[str]]:
        with self.connect() as connection:
            return connection.execute(
                "SELECT context_id FROM sequence_instance"
                " WHERE release_due_at IS NOT NULL"
            ).fetchall()


class Actor:
    """A thread with a consumer in it, which fails, dies and is started again."""

    def __init__(self, proof: Proof, place: str) -> None:
        self._proof = proof
        self._place = place
        self._fault: str | None = None
        self._start()

    def deliver_all(self) -> None:
        while (message := self._proof.take()) is not None:
            if not self._deliver(message):
                self._proof.occurred.add("delivered again")
                self._proof.queue.appendleft(message)
        self._consumer.close()

    def work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._run(lambda: self._consumer.work(stop, poll_interval=0.05))
        self._consumer.close()

    def _deliver(self, message: Message) -> bool:
        acknowledged = False

        def acknowledge() -> None:
            nonlocal acknowledged
            acknowledged = True
            self._place = "in drain"
            if self._proof.draw_death(message):
                self._proof.occurred.add("died after acknowledging")
                raise Death

        self._place = "on delivery"
        self._run(lambda: self._consumer.consume(message, acknowledge))
        return acknowledged

    def _start(self) -> None:
        self._consumer = Consumer(
            self._proof.conninfo, self._handle, timedelta(milliseconds=50)
        )

    def _run(self, run: Callable[[], None]) -> None:
        self._fault = None
        try:
            run()
        except Death:
            self._consumer.close()
            self._start()
        except Exception:
            if self._fault is None:
                raise

    def _handle(self, connection: Connection, message: Message) -> None:
        self._proof.handle_in_turn(connection, message)
        self._proof.occurred.add(f"handled {self._place}")

        fault = self._proof.draw_fault(message)
        if fault is None:
            return
        self._fault = fault
        self._proof.occurred.add(fault)
        match fault:
            case "throws":
                raise ValueError("injected")
            case "swallows error":
                try:
                    connection.execute("SELECT 1 / 0")
                except psycopg.Error:
                    pass
            case "connection cut":
                cut(connection)
            case "dies":
                cut(connection)
                raise Death


def cut(connection: Connection) -> None:
    with socket.socket(fileno=connection.fileno()) as link:
        link.shutdown(socket.SHUT_RDWR)
        link.detach()  # it is not ours to close


def prove_disorder(seed: int, messages: list[Message]) -> None:
    """Without sequences, each message is handled once, as it comes."""
    proof = Proof("order_of_arrival", seed, messages)

    def consume() -> None:
        with proof.connect() as connection:
            while (message := proof.take()) is not None:
                with connection.transaction():
                    claim = connection.execute(
                        "SELECT seqinbox_claim(%s, %s)", (message.type, message.id)
                    )
                    if claim.fetchall() == [(True,)]:
                        proof.handle_in_turn(connection, message)

    with ThreadPoolExecutor(CONSUMERS) as threads:
        for consumer in [threads.submit(consume) for _ in range(CONSUMERS)]:
            consumer.result()
    activity = proof.read_activity()
    out_of_order = sum(not in_order for _, in_order in activity)
    print("order of arrival:", len(activity), "handled,", out_of_order, "out of order")
    assert len(activity) == len(messages)
    # Those without predecessors can't be in order; others must be out of it too.
    orphans = {id for id, _, _ in proof.declaration.left_waiting(messages)}
    assert out_of_order > len(orphans), "in order without sequences"


def prove_order(seed: int, messages: list[Message]) -> None:
    proof = Proof("in_sequence", seed, messages)
    with proof.connect() as connection:
        connection.execute("SELECT seqinbox_declare(%s)", (json.dumps(proof.document),))

    stop = threading.Event()
    with ThreadPoolExecutor(CONSUMERS + WORKERS) as threads:
        try:
            workers = [
                threads.submit(Actor(proof, "by worker").work, stop)
                for _ in range(WORKERS)
            ]
            consumers = [
                threads.submit(Actor(proof, "on delivery").deliver_all)
                for _ in range(CONSUMERS)
            ]
            for consumer in consumers:
                consumer.result()
            wait_until_settled(proof, workers)
        finally:
            stop.set()
    for worker in workers:
        worker.result()

    occurred = proof.occurred.counts
    print("in sequence:", dict(sorted(occurred.items())))
    for what in FAULTS + [
        "handled on delivery",
        "handled in drain",
        "handled by worker",
        "delivered again",
        "died after acknowledging",
    ]:
        assert occurred[what] > 0, f"did not occur: {what}"
    check_end(proof)


def wait_until_settled(proof: Proof, workers: list[Future[None]]) -> None:
    """Until nothing is left to be released or to be tried again."""
    deadline = time.monotonic() + TIMEOUT
    while due := proof.read_due():
        for worker in workers:
            if worker.done():
                worker.result()
        assert time.monotonic() < deadline, f"still due: {due}"
        time.sleep(0.05)


def check_end(proof: Proof) -> None:
    """All that was delivered was handled once and in order, or waits."""
    with proof.connect() as connection:
        rows = connection.execute(
            "SELECT idempotence_id, message_type, context_id, predecessor,"
            " predecessor_state FROM seqinbox_waiting()"
            " ORDER BY context_id, message_type, id"
        ).fetchall()
        states = dict(
            connection.execute(
                "SELECT state, count(*) FROM sequenced_message GROUP BY state"
            ).fetchall()
        )
    for _, type, context_id, predecessor, state in rows:
        print(f"  {type} in {context_id} waits for {predecessor}: {state}")
    check_same(
        "waiting",
        [(id, predecessor, state) for id, _, _, predecessor, state in rows],
        proof.declaration.left_waiting(proof.messages),
    )

    waits = {id for id, *_ in rows}
    activity = proof.read_activity()
    check_same(
        "handled",
        [id for id, _ in activity],
        [message.id for message in proof.messages if message.id not in waits],
    )
    assert all(in_order for _, in_order in activity), "handled too early"

    sequenced = sum(message.context_id is not None for message in proof.messages)
    expected = {"PROCESSED": sequenced - len(waits), "WAITING": len(waits)}
    assert states == expected, f"records: {states} instead of {expected}"


def check_same(what: str, actual: Iterable[Any], expected: Iterable[Any]) -> None:
    too_many, too_few = Counter(actual), Counter(expected)
    too_many, too_few = too_many - too_few, too_few - too_many
    assert not too_many and not too_few, f"{what}: {too_many=} {too_few=}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "package", type=Path, help="where @octokit/webhooks-examples is installed"
    )
    parser.add_argument("seed", type=int, nargs="?", default=random.getrandbits(32))
    arguments = parser.parse_args()

    print("seed", arguments.seed, flush=True)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # connections break
    messages = load_deliveries(arguments.package)
    assert len(messages) == 329
    prove_disorder(arguments.seed, messages)
    prove_order(arguments.seed, messages)


if __name__ == "__main__":
    main()
