"""The torture run: many consumers, every fault there is, and a checker.

The arguments name the servers; their processes must be this user's, so that
they can be killed.  README.md tells what is done and what is checked.
"""

import argparse
import contextlib
import json
import logging
import multiprocessing
import os
import random
import secrets
import signal
import sys
import time

import psycopg

from checker import (check_acknowledged, check_always, check_end, check_log,
                     check_removal)
from consumer import (OPERATED, Report, Task, connect, consume,
                      is_connection_lost)
from servers import NO_SPACE, FullDisk, Pair, Server
from world import World

GENERATION = 20         # seconds of faults before all is drained and checked
STANDSTILL = 120        # seconds after which a round will not end any more
LONG_ENOUGH = 180       # seconds in which everything should have happened
FULL_FOR = 10           # seconds in which the server must notice a full disk
PROBLEMS_SHOWN = 20

# When the faults of the servers come, in seconds since a generation began, and
# up to one second later.
TIMETABLE = {'SIGKILL': [3, 10, 17], 'full-disk': [6], 'promotion': [13]}

# What proves that a run was a torture.
EXPECTED_EVENTS = [
    'PROCESS', 'BUFFERED', 'DUPLICATE', 'released', 'error 40001', 'declared',
    'death after a commit', 'connection lost', 'connection cut',
    'pg_terminate_backend', 'CONSUME', 'EXPIRE', 'seqinbox_fail_and_release',
    'seqinbox_record_failure', 'seqinbox_retry']

# Faults that can be left out, and what proves that they were there.
FAULTS = {
    'SIGKILL': ['SIGKILL'],
    'full-disk': ['full-disk', NO_SPACE],
    'promotion': ['promotion'],
    'cancel': ['pg_cancel_backend', 'cancel at the commit', 'error 57014'],
    'timeouts': ['statement timeout', 'lock timeout'],
    'housekeeping': ['seqinbox_housekeeping', 'marked by it'],
    'declarations': ['declared anew'],
}

SCHEMAS = '''
DROP SCHEMA IF EXISTS business, inbox CASCADE;
CREATE SCHEMA business;
CREATE TABLE business.effect (
    number bigint GENERATED ALWAYS AS IDENTITY,
    message_type text NOT NULL,
    idempotence_id text NOT NULL,
    context_id text NOT NULL,
    in_order boolean NOT NULL);
CREATE INDEX ON business.effect (context_id);
CREATE TABLE business.operator_action (
    action text NOT NULL,
    message_type text NOT NULL,
    idempotence_id text NOT NULL,
    context_id text NOT NULL);
CREATE INDEX ON business.operator_action (context_id);
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('inbox')'''

FIND_VICTIM = '''
SELECT pid FROM pg_stat_activity
 WHERE application_name = 'torture' AND pid <> pg_backend_pid()
 ORDER BY state = 'idle', random() LIMIT 1'''

AGE_EVERYTHING = '''
UPDATE sequence_instance
   SET created_at = created_at - interval '9 days',
       retain_until = retain_until - interval '9 days'
 WHERE name <> 'seqinbox.idempotence';
UPDATE sequential_inbox_idempotence
   SET created_at = created_at - interval '9 days' '''

WHO_WAITS = '''
SELECT pid, state, wait_event_type, wait_event, pg_blocking_pids(pid), query
  FROM pg_stat_activity WHERE application_name = 'torture' '''


class Generation:
    """A new inbox with declarations of its own, from beginning to end."""

    def __init__(self, pool, servers, options, seed):
        self.pool = pool
        self.servers = servers
        self.workers = options.workers
        self.faults = options.faults
        self.seed = seed
        self.rng = random.Random(f'generation {seed}')
        self.world = World(seed)
        self.report = Report()
        self.messages = []      # all that have been delivered
        self.to_deliver = []    # what comes in the next round
        self.rounds = 0
        self.due = sorted(
            (time.monotonic() + seconds + self.rng.random(), fault)
            for fault, times in TIMETABLE.items() if fault in self.faults
            for seconds in times)
        self.connection = None
        self.full_disk = None
        self.free_at = 0        # when it is to be freed

    def run(self, seconds):
        end = time.monotonic() + seconds
        with self.connected():
            self.connection.execute(SCHEMAS)
            self.connection.execute('SELECT seqinbox_declare(%s)',
                                    [json.dumps(self.world.documents()[0])])
        while not self.report.problems and (
                time.monotonic() < end
                or seconds == GENERATION and (self.due or self.full_disk)):
            self.run_round(self.new_deliveries())
        if not self.report.problems:
            self.finish()

    @contextlib.contextmanager
    def connected(self):
        """With a connection; if it is lost, the rest is left out."""
        if self.connection is None or self.connection.closed:
            self.connection = connect()
        try:
            yield
        except psycopg.Error as error:
            if not is_connection_lost(self.connection, error):
                raise

    def new_deliveries(self):
        """New contexts.  Each message comes several times, often side by
        side, so that consumers meet; some come only in the next round.
        """
        rng = self.rng
        groups = [[message] for message in self.to_deliver]
        self.to_deliver = []
        for _ in range(rng.choice([1, 2, 4, 8])):
            context_id = f'context {len(self.messages)}'
            if rng.random() < 0.3:
                context_id = OPERATED + context_id
            for message in self.world.messages(context_id):
                self.messages.append(message)
                if rng.random() < 0.1:
                    self.to_deliver.append(message)
                    continue
                copies = [message] * rng.choice([2, 2, 3, self.workers])
                if rng.random() < 0.5:
                    groups.append(copies)
                else:
                    groups += [[copy] for copy in copies]
        rng.shuffle(groups)
        return sum(groups, [])

    def run_round(self, deliveries, calm=False):
        """Deals deliveries out to the consumers, and disturbs them."""
        self.rounds += 1
        upgrade = not calm and self.rng.random() < 0.1
        result = self.pool.map_async(consume, [
            Task(f'{self.seed} {self.rounds} {n}', self.world,
                 deliveries[n::self.workers], self.faults, calm, upgrade)
            for n in range(self.workers)], chunksize=1)

        end = time.monotonic() + STANDSTILL
        while not result.ready():
            result.wait(self.rng.uniform(0.1, 0.5))
            if self.full_disk:
                # nothing else is done meanwhile: there may be no server
                self.tend_full_disk()
                continue
            with self.connected():
                if not calm and not result.ready():
                    self.disturb()
                self.report.problems += check_always(self.connection,
                                                     self.world)
                if time.monotonic() > end:
                    self.report.problems += [
                        f'a consumer stands still: {row}'
                        for row in self.connection.execute(WHO_WAITS)]
            if self.report.problems:
                return

        for report in result.get():
            self.report.add(report)
        self.to_deliver += self.report.unacknowledged
        self.report.unacknowledged = []
        if not self.full_disk:
            with self.connected():
                self.report.problems += check_acknowledged(self.connection,
                                                           self.report)

    def disturb(self):
        fault = 'a signal'
        if self.due and time.monotonic() > self.due[0][0]:
            fault = self.due[0][1]
        if fault == 'full-disk':
            self.full_disk = FullDisk(self.servers.primary)
            self.free_at = time.monotonic() + FULL_FOR
        elif fault == 'promotion':
            self.servers.fail_over()
        else:
            victim = self.connection.execute(FIND_VICTIM).fetchone()
            if victim is None:
                return
            if fault == 'SIGKILL':
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGKILL)
            else:
                fault = self.rng.choice(
                    ['pg_cancel_backend'] * ('cancel' in self.faults)
                    + ['pg_terminate_backend'])
                self.connection.execute(f'SELECT {fault}(%s)', victim)
        if fault in TIMETABLE:
            self.due.pop(0)
        self.report.counts[fault] += 1

    def tend_full_disk(self):
        """It is freed up to one second after the server has noticed."""
        unnoticed = not self.full_disk.noticed
        self.full_disk.fill()
        if unnoticed and self.full_disk.noticed:
            self.free_at = time.monotonic() + self.rng.random()
        if time.monotonic() > self.free_at:
            self.free_disk()

    def free_disk(self):
        if self.full_disk:
            self.full_disk.free()
            self.full_disk = None

    def finish(self):
        """Delivers everything once more, drains, and checks the result."""
        self.free_disk()
        self.connection.close()     # it may be one to a server that is gone
        self.connection = connect()
        self.to_deliver = self.rng.sample(self.messages, len(self.messages))
        end = time.monotonic() + STANDSTILL
        while self.to_deliver or self.is_due():
            deliveries, self.to_deliver = self.to_deliver, []
            self.run_round(deliveries, calm=True)
            if time.monotonic() > end:
                self.report.problems.append('the inbox is not drained')
            if self.report.problems:
                return
        self.close_complete()
        self.report.problems += check_end(self.connection, self.world,
                                          self.messages)
        self.connection.execute(AGE_EVERYTHING)
        self.connection.execute("CALL seqinbox_housekeeping('0')")
        self.report.problems += check_removal(self.connection)

    def is_due(self):
        return self.connection.execute(
            'SELECT EXISTS (SELECT FROM sequence_instance'
            ' WHERE release_due_at IS NOT NULL)').fetchone()[0]

    def close_complete(self):
        """An instance stays open when its last messages were in flight at the
        same moment.  Whoever looks for the next one then closes it.
        """
        instances = self.connection.execute(
            "SELECT id FROM sequence_instance WHERE state = 'OPEN'"
            " AND name <> 'seqinbox.idempotence'").fetchall()
        for instance in instances:
            self.connection.execute('SELECT seqinbox_next(%s)', instance)
        self.report.counts['left open'] += len(instances)


def start_consumer(journal):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.getLogger('psycopg').setLevel(logging.CRITICAL)
    logging.basicConfig(filename=journal, level=logging.INFO,
                        format='%(asctime)s %(message)s')


def torture(options, pool, servers, logs):
    """Generations until the time is over or there is a problem."""
    total = Report()
    seed = options.seed
    end = time.monotonic() + options.duration
    while not total.problems and (left := end - time.monotonic()) > 0:
        os.truncate(options.journal, 0)
        for log in logs:
            log.seek(0, os.SEEK_END)
        generation = Generation(pool, servers, options, seed)
        generation.run(min(GENERATION, left))
        total.add(generation.report)
        lines = sum((log.readlines() for log in logs), [])
        counts = generation.report.counts
        total.counts[NO_SPACE] += sum(NO_SPACE in line for line in lines)
        total.problems += check_log(lines, counts['SIGKILL'],
                                    counts['full-disk'] > 0)
        print(f'seed {seed}: {generation.rounds} rounds,'
              f' {len(generation.messages)} messages,'
              f' {len(set(generation.report.effects))} acknowledged effects',
              flush=True)
        seed += 1
    if options.duration >= LONG_ENOUGH and not total.problems:
        events = EXPECTED_EVENTS + sum(
            (FAULTS[fault] for fault in sorted(options.faults)), [])
        total.problems += [f'has not happened: {event}' for event in events
                           if not total.counts[event]]
    return total


def parse_options():
    parser = argparse.ArgumentParser(description='see README.md')
    for server in ['--primary', '--standby']:
        parser.add_argument(server, required=True, nargs=4,
                            metavar=('DATA', 'HOST', 'PORT', 'LOG'))
    parser.add_argument('--journal', required=True)
    parser.add_argument('--duration', type=int, default=45, metavar='SECONDS')
    parser.add_argument('--seed', type=int, default=secrets.randbelow(10**6))
    parser.add_argument('--workers', type=int, default=12)
    parser.add_argument('--without', action='append', default=[],
                        choices=FAULTS, metavar='FAULT',
                        help=', '.join(FAULTS))
    options = parser.parse_args()
    options.faults = frozenset(FAULTS) - frozenset(options.without)
    return options


def main():
    options = parse_options()
    print(f'seed {options.seed}', flush=True)
    servers = Pair(Server(*options.primary), Server(*options.standby))
    if 'full-disk' in options.faults and not servers.primary.disk:
        print('left out: full-disk; no small disk could be mounted')
        options.faults -= {'full-disk'}

    # consumers go to the one that is the primary
    os.environ.update(
        PGHOST=f'{servers.primary.host},{servers.standby.host}',
        PGPORT=f'{servers.primary.port},{servers.standby.port}',
        PGDATABASE='postgres', PGTARGETSESSIONATTRS='read-write')

    sys.stderr = sys.stdout
    os.setpgrp()
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    open(options.journal, 'w').close()
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(open(log, errors='replace'))
                for log in servers.logs()]
        pool = stack.enter_context(multiprocessing.Pool(
            options.workers, start_consumer, [options.journal]))
        total = torture(options, pool, servers, logs)

    for event, count in sorted(total.counts.items()):
        print(f'{count:8} {event}')
    for problem in total.problems[:PROBLEMS_SHOWN]:
        print(f'PROBLEM: {problem}')
    if total.problems:
        sys.exit(f'{len(total.problems)} problems')
    os.remove(options.journal)


if __name__ == '__main__':
    main()
