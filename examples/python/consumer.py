"""Handles each message once, and not before those that have to come before it.

What arrives too early waits in the inbox, which hands it out when its time has
come.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg import Connection
from psycopg.errors import ObjectNotInPrerequisiteState
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row


@dataclass(frozen=True)
class Message:
    type: str
    id: str
    context_id: str | None  # None: it has no place in a sequence
    body: bytes


class Consumer:
    """A consumer with a connection of its own, for one thread.

    handle(connection, message) must do its writes with the connection that it
    is given. When it raises an exception, the message is offered again after
    retry_after.
    """

    def __init__(
        self,
        conninfo: str,
        handle: Callable[[Connection, Message], None],
        retry_after: timedelta = timedelta(seconds=10),
    ) -> None:
        self._conninfo = conninfo
        self._handle = handle
        self._retry_after = retry_after
        self._connection: Connection | None = None

    def consume(self, message: Message, acknowledge: Callable[[], None]) -> None:
        """Takes in a delivery, and calls acknowledge() when the inbox has it.

        If that was not called, the message must be delivered again. An error
        after that needs nothing but a worker, which does what is left.
        """
        release_due = False
        try:
            with self._transaction() as connection:
                received = _receive(connection, message)
                if received.process:
                    self._handle(connection, message)
            release_due = received.release_due
        except Exception as error:
            # Without a context there is no sequence to record it in, and only
            # another delivery helps.
            if message.context_id is None:
                raise
            self._record_failure(message, error)
        acknowledge()

        if release_due:
            self.drain(received.sequence_instance_id)

    def drain(self, instance: int) -> None:
        """Handles what waits in a sequence instance and may be released."""
        while self._handle_next(instance):
            pass

    def work(self, stop: threading.Event, poll_interval: float = 1.0) -> None:
        """Handles what may be released anywhere.

        Those are retries that have come due, and what a consumer left that died
        after it had acknowledged. At least one worker must be running; more of
        them don't disturb each other. Start it again when it raises an
        exception, since then the database was out of reach.
        """
        while not stop.is_set():
            if not self._handle_next(None):
                stop.wait(poll_interval)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _handle_next(self, instance: int | None) -> bool:
        """Handles one message that may be released; False if there is none."""
        released = None
        try:
            with self._transaction() as connection:
                released = _next(connection, instance)
                if released is not None:
                    self._handle(connection, _message(released))
        except Exception as error:
            if released is None:
                raise
            self._settle(
                "SELECT seqinbox_fail_and_release(%s, %s, %s)",
                (released.id, str(error), self._retry_after),
            )
        return released is not None

    def _record_failure(self, message: Message, error: Exception) -> None:
        self._settle(
            "SELECT seqinbox_record_failure(%s, %s, %s, %s, message_value => %s,"
            " retry_after => %s)",
            (
                message.type,
                message.id,
                message.context_id,
                str(error),
                message.body,
                self._retry_after,
            ),
        )

    def _settle(self, sql: str, parameters: tuple[Any, ...]) -> None:
        # Between the rollback and this, another consumer may have taken the
        # message over and settled it. Then there is no failure to record.
        with suppress(ObjectNotInPrerequisiteState):
            with self._transaction() as connection:
                connection.execute(sql, parameters)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        if self._connection is None or self._connection.closed:
            self._connection = Connection.connect(
                self._conninfo, autocommit=True, row_factory=namedtuple_row
            )
        with self._connection.transaction():
            yield self._connection

            # To psycopg, a COMMIT after a failed query is no error, but it is a
            # rollback: without this, a handler that swallows an error would
            # lose the message.
            status = self._connection.info.transaction_status
            if status is TransactionStatus.INERROR:
                raise RuntimeError("a query had failed, nothing can be committed")


def _receive(connection: Connection, message: Message) -> Any:
    # Without a context there is nothing that it could come before or after, but
    # it may come twice all the same. Its type need not be declared.
    if message.context_id is None:
        return connection.execute(
            "SELECT seqinbox_claim(%s, %s) AS process, false AS release_due",
            (message.type, message.id),
        ).fetchone()
    return connection.execute(
        "SELECT * FROM seqinbox_receive(%s, %s, %s, %s)",
        (message.type, message.id, message.context_id, message.body),
    ).fetchone()


def _next(connection: Connection, instance: int | None) -> Any:
    return connection.execute("SELECT * FROM seqinbox_next(%s)", (instance,)).fetchone()


def _message(row: Any) -> Message:
    return Message(
        row.message_type, row.idempotence_id, row.context_id, row.message_value
    )
