"""A consumer: the loop that the guide shows, and all that can go wrong in it.

Its process works through its share of a round's deliveries, each step in the
order of the guide: receive, handle, commit, drain.  The handler writes a row
into the business table "effect", in the transaction of the delivery.
"""

import contextlib
import datetime
import json
import logging
import random
import re
import socket
import threading
import time
from collections import Counter
from typing import NamedTuple

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row

from world import Message, World, payload

CONNECT_TIMEOUT = 60    # seconds in which the server recovers from a crash
JOURNAL_WIDTH = 300     # of a statement and its arguments

RECEIVE = 'SELECT * FROM seqinbox_receive(%s, %s, %s, %s, %s, %s, %s)'
RECEIVE_BATCH = '''
SELECT * FROM seqinbox_receive_batch(%s, %s, %s, %s, %s, %s, %s, %s)
ORDER BY ordinal'''
RECORD_FAILURE = '''
SELECT seqinbox_record_failure(%s, %s, %s, 'handler failed', %s, %s, %s, %s,
                               retry_after => %s)'''
NEXT = 'SELECT * FROM seqinbox_next(%s)'
FAIL_AND_RELEASE = "SELECT seqinbox_fail_and_release(%s, 'handler failed', %s)"

# What the business knows of a context.  Types that an operator has expired
# count as processed, as they do in the inbox.
KNOWN = '''
SELECT array(SELECT message_type FROM effect WHERE context_id = %s
             UNION
             SELECT message_type FROM operator_action
              WHERE context_id = %s AND action = 'EXPIRE'),
       EXISTS (SELECT FROM operator_action
                WHERE message_type = %s AND idempotence_id = %s
                  AND action = 'CONSUME')'''

EFFECT = '''
INSERT INTO effect (message_type, idempotence_id, context_id, in_order)
VALUES (%s, %s, %s, %s)'''

OPERATED = 'operated '  # how the contexts begin in which an operator steps in

# Of an instance, but of none of its claims, the retention is over: housekeeping
# has to settle it, and must not remove it.  It leaves out what an operator may
# have expired, which perhaps has no claim.
AGE = '''
UPDATE sequence_instance
   SET created_at = created_at - interval '1 day',
       retain_until = retain_until - interval '1 day'
 WHERE id = (SELECT id FROM sequence_instance
              WHERE name <> 'seqinbox.idempotence'
                AND retain_until > clock_timestamp()
                AND NOT starts_with(context_id, %s)
              ORDER BY random() LIMIT 1)'''

FIND_TO_OPERATE = '''
SELECT m.id, m.state, m.message_type, m.idempotence_id, i.context_id
  FROM sequenced_message m
  JOIN sequence_instance i ON i.id = m.sequence_instance_id
 WHERE m.state IN ('WAITING', 'FAILED') AND starts_with(i.context_id, %s)
 ORDER BY random() LIMIT 1'''


class HandlerFailed(Exception):
    def __init__(self, message):
        super().__init__(message)
        self.message = message


class Died(Exception):
    """The consumer forgets what it would have to do after a commit."""


class Task(NamedTuple):
    """What a consumer is to do in one round."""
    seed: str
    world: World
    deliveries: list
    faults: frozenset   # that are wanted
    calm: bool          # nothing goes wrong
    upgrade: bool       # seqinbox_next() in the transaction of the delivery


class Report:
    """What came of it."""

    def __init__(self):
        self.counts = Counter()
        self.problems = []
        self.unacknowledged = []
        # what no failover may lose: messages whose effects, or records, are
        # in a commit that was reported
        self.effects = []
        self.buffered = []

    def add(self, other):
        self.counts += other.counts
        self.problems += other.problems
        self.unacknowledged += other.unacknowledged
        self.effects += other.effects
        self.buffered += other.buffered


def connect():
    """A connection, as soon as there is a server."""
    end = time.monotonic() + CONNECT_TIMEOUT
    while True:
        try:
            return psycopg.connect(
                autocommit=True, row_factory=namedtuple_row,
                application_name='torture',
                options='-c search_path=inbox,business')
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Warnings:
    """What the server says besides the results.

    When a commit is cancelled that waits for the standby, the server reports
    it as done, with a warning that only this server has it.
    """

    def __init__(self):
        self.only_local = False

    def add(self, diagnostic):
        if 'canceling wait for synchronous repl' in diagnostic.message_primary:
            self.only_local = True


def cancel(connection):
    with contextlib.suppress(psycopg.Error):
        connection.cancel()


def is_connection_lost(connection, error):
    return connection.closed and (
        error.sqlstate is None or error.sqlstate.startswith(('08', '57P')))


def is_between_versions(error):
    """Did a delivery and a drain lock the versions of one row crosswise?

    The server lets FOR KEY SHARE go from older versions to newer ones, while
    FOR UPDATE comes back to the one that it began with.  README.md says more.
    """
    waits = (error.diag.message_detail or '').splitlines()
    return (len(waits) == 2 and
            all('waits for ShareLock on transaction' in wait for wait in waits)
            and re.search('while locking .*in relation "sequence_instance"',
                          error.diag.context or '') is not None)


# From task to task, so that the server's saved plans grow old.
connection = None


def log(text):
    """Writes into the journal, under the number that the server's log gives
    this connection.
    """
    pid = None if connection.closed else connection.info.backend_pid
    logging.info('[%s] %s', pid, text)


def consume(task):
    """Does a task; the entry point of the process."""
    consumer = Consumer(task)
    consumer.run()
    return consumer.report


class Consumer:
    def __init__(self, task):
        self.task = task
        self.rng = random.Random(task.seed)
        self.report = Report()
        self.snapshot_kept = False
        self.limited = False    # a timeout may end each statement
        self.warnings = Warnings()
        self.effects = []       # of the transaction
        self.cancels = []

    def chance(self, probability, fault=None):
        return (not self.task.calm
                and (fault is None or fault in self.task.faults)
                and self.rng.random() < probability)

    def count(self, event):
        self.report.counts[event] += 1

    def execute(self, query, *args):
        log(f'{" ".join(query.split())} {args}'[:JOURNAL_WIDTH])
        result = connection.execute(query, args)
        log('done')
        return result

    def run(self):
        deliveries = list(self.task.deliveries)
        while deliveries:
            size = self.rng.choice([1, 1, 1, 2, 4])
            messages, deliveries = deliveries[:size], deliveries[size:]
            self.attempt(self.deliver, messages)
            if self.chance(0.1):
                self.attempt(self.drain, None)
            if self.chance(0.1):
                self.attempt(self.operate)
            if self.chance(0.05):
                self.attempt(self.declare)
            if self.chance(0.03, 'housekeeping'):
                self.attempt(self.housekeep)
        if self.task.calm:
            self.attempt(self.drain, None)

    def attempt(self, step, *args):
        """Runs a step, and knows which errors are to be expected."""
        global connection
        if connection is None or connection.closed:
            connection = connect()
        connection.add_notice_handler(self.warnings.add)
        try:
            self.limit_time()
            if self.chance(0.03, 'cancel'):
                self.cancel_within(0.05)
            step(*args)
        except Died:
            self.count('death after a commit')
        except psycopg.Error as error:
            log(f'{error.sqlstate} {error}')
            if is_connection_lost(connection, error):
                self.count('connection lost')
            elif self.is_expected(error):
                self.count(f'error {error.sqlstate}')
                self.count_timeout(error)
            else:
                self.report.problems.append(
                    f'unexpected error {error.sqlstate} in'
                    f' {step.__name__}: {error}')
            if step == self.deliver:
                self.report.unacknowledged += args[0]
        finally:
            self.restore_connection()

    def is_expected(self, error):
        return ((error.sqlstate == '57014' and not self.task.calm) or
                (error.sqlstate == '55P03' and self.limited) or
                (error.sqlstate == '53100' and not self.task.calm
                 and 'full-disk' in self.task.faults) or
                (error.sqlstate == '40001' and self.snapshot_kept) or
                (error.sqlstate == '40P01' and
                 (self.task.upgrade or is_between_versions(error))))

    def count_timeout(self, error):
        """The server says which timeout it was, but not by the SQLSTATE."""
        for timeout in ['statement timeout', 'lock timeout']:
            if str(error).startswith(f'canceling statement due to {timeout}'):
                self.count(timeout)

    def limit_time(self):
        """For all statements of a step."""
        self.limited = self.chance(0.1, 'timeouts')
        if self.limited:
            timeout = self.rng.choice(['statement_timeout', 'lock_timeout'])
            self.execute(f'SET {timeout} = {self.rng.choice([1, 2, 5, 20])}')

    def cancel_within(self, seconds):
        """Cancels whatever the server is at after up to so many seconds."""
        timer = threading.Timer(self.rng.uniform(0, seconds), cancel,
                                [connection])
        timer.start()
        self.cancels.append(timer)

    def restore_connection(self):
        """As the next step wants it."""
        for timer in self.cancels:
            timer.join()
        connection.remove_notice_handler(self.warnings.add)
        # a rollback may have been cancelled, too
        if (not connection.closed and
                connection.info.transaction_status != TransactionStatus.IDLE):
            connection.close()
        while not connection.closed and (self.cancels or self.limited):
            try:
                self.execute('RESET statement_timeout')
                self.execute('RESET lock_timeout')
                break
            except psycopg.Error as error:
                if not self.is_expected(error):
                    connection.close()
        self.cancels = []

    @contextlib.contextmanager
    def transaction(self):
        self.snapshot_kept = self.chance(0.1)
        self.effects = []
        self.warnings.only_local = False
        begun = False
        try:
            with connection.transaction():
                begun = True
                if self.snapshot_kept:
                    level = self.rng.choice(['REPEATABLE READ',
                                             'SERIALIZABLE'])
                    self.execute(
                        f'SET TRANSACTION ISOLATION LEVEL {level}')
                yield
                if self.chance(0.05, 'cancel'):
                    self.count('cancel at the commit')
                    self.cancel_within(0.002)
        except psycopg.Error:
            # psycopg counts a BEGIN that was cancelled as one that was not
            if not begun:
                connection.close()
            raise
        if self.warnings.only_local:
            self.count('commit not on the standby')
        else:
            self.report.effects += self.effects

    def deliver(self, messages):
        try:
            with self.transaction():
                decisions = self.receive(messages)
                for message, decision in zip(messages, decisions):
                    self.count(decision.outcome)
                    if decision.process:
                        self.handle(message)
                instances = {decision.sequence_instance_id
                             for decision in decisions if decision.release_due}
                if self.task.upgrade:
                    for instance in instances:
                        self.drain_inside(instance)
        except HandlerFailed as failure:
            self.report.unacknowledged += messages
            self.record_failure(failure.message)
            return
        if self.warnings.only_local:
            self.report.unacknowledged += messages
        else:
            self.report.buffered += [
                message for message, decision in zip(messages, decisions)
                if decision.outcome == 'BUFFERED']
        for instance in instances:
            self.risk_death()
            self.drain(instance)

    def receive(self, messages):
        if len(messages) == 1:
            [message] = messages
            cursor = self.execute(RECEIVE, *message, *payload(message))
            return cursor.fetchall()

        values, keys, names, header_values = zip(*map(payload, messages))
        cursor = self.execute(
            RECEIVE_BATCH, *map(list, zip(*messages)), list(values),
            list(keys), [len(each) for each in names], sum(names, []),
            sum(header_values, []))
        return cursor.fetchall()

    def handle(self, message):
        """The handler.  Whatever it sees in the business table was committed
        together with the records that the server has decided by.
        """
        type, idempotence_id, context_id = message
        [done, consumed] = self.execute(KNOWN, context_id, context_id, type,
                                        idempotence_id).fetchone()
        if self.chance(0.1):
            raise HandlerFailed(message)
        in_order = self.task.world.may_be_handled(type, done)
        self.execute(EFFECT, *message, in_order or consumed)
        self.effects.append(message)
        time.sleep(self.rng.choice([0, 0, 0, 0.002, 0.02]))
        if self.chance(0.1):
            raise HandlerFailed(message)
        if self.chance(0.02):
            self.count('connection cut')
            cut(connection)

    def record_failure(self, message):
        if self.rng.random() < 0.3:
            return      # the message comes again by itself
        given = self.rng.random() < 0.7
        recorded = self.step_in(RECORD_FAILURE, *message,
                                *(payload(message) if given else [None] * 4),
                                self.delay() if given else None)
        if recorded and given:
            self.maybe_retry(recorded.fetchone()[0])

    def delay(self):
        """When to retry; None for not by itself."""
        if self.rng.random() < 0.5:
            return None
        return datetime.timedelta(seconds=self.rng.uniform(0, 0.5))

    def maybe_retry(self, id):
        if self.rng.random() < 0.3:
            self.step_in('SELECT seqinbox_retry(%s)', id)

    def step_in(self, query, *args):
        """A step that the state of its message may not allow any more; then
        there is no result.
        """
        try:
            result = self.execute(query, *args)
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            log(error)
            self.count('too late to step in')
            return None
        self.count(query.split('(')[0].split()[-1])
        return result

    def drain(self, instance):
        """Releases what there is, of one instance or of any."""
        while self.release(instance):
            self.count('released')
            self.risk_death()

    def risk_death(self):
        if self.chance(0.1):
            connection.close()
            raise Died()

    def release(self, instance):
        row = None
        try:
            with self.transaction():
                row = self.execute(NEXT, instance).fetchone()
                if row is None:
                    return False
                self.handle_released(row)
                return True
        except HandlerFailed:
            return self.fail(row.id)

    def drain_inside(self, instance):
        while (row := self.execute(NEXT, instance).fetchone()) is not None:
            self.handle_released(row)

    def handle_released(self, row):
        message = Message(row.message_type, row.idempotence_id, row.context_id)
        value, key, names, header_values = payload(message)
        if (row.message_value, row.message_key, row.header_names or [],
                row.header_values or []) != (value, key, names, header_values):
            self.report.problems.append(f'payload of {message} changed')
        self.handle(message)

    def fail(self, id):
        """After a rollback.  False when the instance is left to others."""
        if self.rng.random() < 0.2:
            return False
        self.step_in(FAIL_AND_RELEASE, id, self.delay())
        self.maybe_retry(id)
        return True

    def operate(self):
        """An operator steps in, by function or by writing pending_action.

        What is done is noted in the same transaction, for the handlers and
        the checks.
        """
        row = self.execute(FIND_TO_OPERATE, OPERATED).fetchone()
        if row is None:
            return
        action = self.rng.choice(['CONSUME', 'EXPIRE'])
        too_late = psycopg.errors.ObjectNotInPrerequisiteState
        with contextlib.suppress(too_late), self.transaction():
            self.execute('INSERT INTO operator_action VALUES (%s, %s, %s, %s)',
                         action, *row[2:])
            if self.rng.random() < 0.5:
                self.execute(f'SELECT seqinbox_{action.lower()}(%s)', row.id)
            else:
                self.execute('UPDATE sequenced_message SET pending_action = %s'
                             " WHERE id = %s AND state <> 'PROCESSED'",
                             action, row.id)
            self.count(action)

    def declare(self):
        """One of the variants; sometimes rolled back."""
        documents = self.task.world.documents()
        if 'declarations' not in self.task.faults:
            documents = documents[:1]
        with contextlib.suppress(psycopg.Rollback), self.transaction():
            self.execute('SELECT seqinbox_declare(%s)',
                         json.dumps(self.rng.choice(documents)))
            time.sleep(self.rng.uniform(0, 0.02))
            if self.rng.random() < 0.3:
                raise psycopg.Rollback()
        self.count('declared')
        if len(documents) > 1:
            self.count('declared anew')

    def housekeep(self):
        self.execute(AGE, OPERATED)
        report = self.execute(
            'CALL seqinbox_housekeeping(batch_size => %s)',
            self.rng.choice([1, 10, 1000])).fetchone()
        self.count('seqinbox_housekeeping')
        self.report.counts['closed by it'] += report.closed
        self.report.counts['marked by it'] += report.marked


def cut(connection):
    """Cuts a connection without a word to the server."""
    with socket.socket(fileno=connection.fileno()) as wire:
        wire.shutdown(socket.SHUT_RDWR)
        wire.detach()
