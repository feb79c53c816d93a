"""The torture run: many consumers, every fault there is, and a checker.

PGHOST and the like name the server; its processes must be this user's, so
that they can be killed.  README.md tells what is done and what is checked.
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

from checker import check_always, check_end, check_log
from consumer import (OPERATED, Report, Task, connect, consume,
                      is_connection_lost)
from world import World

GENERATION = 20         # seconds of faults before all is drained and checked
BETWEEN_CRASHES = 7     # seconds
STANDSTILL = 120        # seconds after which a round will not end any more
LONG_ENOUGH = 20        # seconds in which everything should have happened
PROBLEMS_SHOWN = 20

# What proves that a run was a torture.
EXPECTED_EVENTS = [
    'PROCESS', 'BUFFERED', 'DUPLICATE', 'released', 'error 40001', 'declared',
    'death after a commit', 'connection lost', 'connection cut',
    'pg_cancel_backend', 'pg_terminate_backend', 'SIGKILL', 'CONSUME',
    'EXPIRE', 'seqinbox_fail_and_release', 'seqinbox_record_failure',
    'seqinbox_retry']

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

WHO_WAITS = '''
SELECT pid, state, wait_event_type, wait_event, pg_blocking_pids(pid), query
  FROM pg_stat_activity WHERE application_name = 'torture' '''


class Generation:
    """A new inbox with declarations of its own, from beginning to end."""

    def __init__(self, pool, workers, seed):
        self.pool = pool
        self.workers = workers
        self.seed = seed
        self.rng = random.Random(f'generation {seed}')
        self.world = World(seed)
        self.report = Report()
        self.messages = []      # all that have been delivered
        self.to_deliver = []    # what comes in the next round
        self.rounds = 0
        self.next_crash = time.monotonic() + BETWEEN_CRASHES / 2
        self.connection = None

    def run(self, seconds):
        end = time.monotonic() + seconds
        with self.connected():
            self.connection.execute(SCHEMAS)
            self.connection.execute('SELECT seqinbox_declare(%s)',
                                    [json.dumps(self.world.document())])
        while time.monotonic() < end and not self.report.problems:
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
                 deliveries[n::self.workers], calm, upgrade)
            for n in range(self.workers)], chunksize=1)

        end = time.monotonic() + STANDSTILL
        while not result.ready():
            result.wait(self.rng.uniform(0.1, 0.5))
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

    def disturb(self):
        victim = self.connection.execute(FIND_VICTIM).fetchone()
        if victim is None:
            return
        if time.monotonic() > self.next_crash:
            self.next_crash += BETWEEN_CRASHES
            how = 'SIGKILL'
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
        else:
            how = self.rng.choice(['pg_cancel_backend',
                                   'pg_terminate_backend'])
            self.connection.execute(f'SELECT {how}(%s)', victim)
        self.report.counts[how] += 1

    def finish(self):
        """Delivers everything once more, drains, and checks the result."""
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


def torture(options, pool, server_log):
    """Generations until the time is over or there is a problem."""
    total = Report()
    seed = options.seed
    end = time.monotonic() + options.duration
    while not total.problems and (left := end - time.monotonic()) > 0:
        os.truncate(options.journal, 0)
        server_log.seek(0, os.SEEK_END)
        generation = Generation(pool, options.workers, seed)
        generation.run(min(GENERATION, left))
        total.add(generation.report)
        total.problems += check_log(server_log.readlines(),
                                    generation.report.counts['SIGKILL'])
        print(f'seed {seed}: {generation.rounds} rounds,'
              f' {len(generation.messages)} messages', flush=True)
        seed += 1
    if options.duration >= LONG_ENOUGH and not total.problems:
        total.problems += [f'has not happened: {event}'
                           for event in EXPECTED_EVENTS
                           if not total.counts[event]]
    return total


def main():
    parser = argparse.ArgumentParser(description='see README.md')
    parser.add_argument('--server-log', required=True)
    parser.add_argument('--journal', required=True)
    parser.add_argument('--duration', type=int, default=45, metavar='SECONDS')
    parser.add_argument('--seed', type=int, default=secrets.randbelow(10**6))
    parser.add_argument('--workers', type=int, default=12)
    options = parser.parse_args()
    print(f'seed {options.seed}', flush=True)

    sys.stderr = sys.stdout
    os.setpgrp()
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    open(options.journal, 'w').close()
    with (open(options.server_log, errors='replace') as server_log,
          multiprocessing.Pool(options.workers, start_consumer,
                               [options.journal]) as pool):
        total = torture(options, pool, server_log)

    for event, count in sorted(total.counts.items()):
        print(f'{count:8} {event}')
    for problem in total.problems[:PROBLEMS_SHOWN]:
        print(f'PROBLEM: {problem}')
    if total.problems:
        sys.exit(f'{len(total.problems)} problems')
    os.remove(options.journal)


if __name__ == '__main__':
    main()
