"""Hostile input for every function, in parts:

arguments      each argument of each function with each of many nasty values
calls          random calls with random arguments, by several roles
declarations   random and mutated declarations
traceparents   random and mutated trace contexts
tables         inboxes whose columns have other types
large          arguments as large as values can be

PGHOST and the like name the server; the database has what inbox.sql makes.
README.md says what is checked.
"""

import argparse
import secrets
import sys
import time

import psycopg

from calls import call_at_random, call_systematically
from declarations import fuzz_declarations
from large import call_with_large
from tables import call_with_other_types
from traceparents import fuzz_traceparents

PROBLEMS_SHOWN = 20


def connect():
    connection = psycopg.connect('', autocommit=True, prepare_threshold=None)
    connection.execute('SET search_path = inbox;'
                       ' SET client_min_messages = error')
    return connection


def until(rounds, duration):
    """A test whether to go on, by rounds or by time."""
    end = None if duration is None else time.monotonic() + duration

    def go_on(done):
        return done < rounds if end is None else time.monotonic() < end
    return go_on


def problems_of_calls(caller):
    caller.report()
    return caller.problems


def run(part, seed, go_on):
    with connect() as connection:
        if part == 'arguments':
            return problems_of_calls(call_systematically(connection))
        if part == 'calls':
            return problems_of_calls(call_at_random(connection, seed, go_on))
        if part == 'large':
            return call_with_large(connection).problems
        fuzz = {'declarations': fuzz_declarations,
                'tables': call_with_other_types,
            'traceparents': fuzz_traceparents}[part]
        return fuzz(connection, seed, go_on)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('part')
    parser.add_argument('--seed', type=int, default=secrets.randbelow(10**6))
    parser.add_argument('--rounds', type=int, default=1000)
    parser.add_argument('--duration', type=float, metavar='SECONDS')
    options = parser.parse_args()
    sys.stderr = sys.stdout
    print(f'{options.part}: seed {options.seed}', flush=True)

    problems = run(options.part, options.seed,
                   until(options.rounds, options.duration))
    for problem in problems[:PROBLEMS_SHOWN]:
        print(f'PROBLEM: {problem}')
    if problems:
        sys.exit(f'{len(problems)} problems')


if __name__ == '__main__':
    main()
