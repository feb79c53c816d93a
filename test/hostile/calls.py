"""Calls of every function of the extension with every kind of argument.

Whatever a call is given, it succeeds or raises an error that the reference
names for this function, and leaves an inbox in order.
"""

import collections
import pathlib
import random
import re
from typing import NamedTuple

import psycopg

from values import nasty, typed, valid

REFERENCE = pathlib.Path(__file__).parents[2] / 'docs' / 'reference.md'

# Documented for all functions, but none of these can happen here: there is
# one session, which may do everything and needs no time.
IMPOSSIBLE = {'25006', '40001', '40P01', '42501', '42703', '42P01', '55P03',
              '57014'}

SQLSTATE = re.compile(r'\b(?=[0-9A-Z]*\d)[0-9A-Z]{5}\b')

# What no call may leave behind.
DISORDER = '''
    SELECT 'payloads of message ' || m.id || ', ' || m.state
      FROM inbox.sequenced_message m
      LEFT JOIN inbox.buffered_message b ON b.sequenced_message_id = m.id
     GROUP BY m.id
    HAVING count(b.id) <> 1 AND m.state = 'WAITING'
        OR count(b.id) > 1
        OR count(b.id) > 0 AND m.state = 'PROCESSED'
    UNION ALL
    SELECT 'payload of another instance: message ' || m.id
      FROM inbox.sequenced_message m
      JOIN inbox.buffered_message b ON b.sequenced_message_id = m.id
     WHERE b.sequence_instance_id <> m.sequence_instance_id
    UNION ALL
    SELECT 'records of ' || message_type || ' ' || idempotence_id
      FROM inbox.sequenced_message
     GROUP BY message_type, idempotence_id HAVING count(*) > 1
    UNION ALL
    SELECT 'message ' || w.id || ' can be released, but is not due'
      FROM seqinbox_waiting() w
      JOIN inbox.sequence_instance i ON i.id = w.sequence_instance_id
     WHERE w.waits_for = 'RELEASE' AND i.release_due_at IS NULL
    UNION ALL
    SELECT 'type of no sequence: ' || t.message_type
      FROM inbox.message_type_declaration t
      LEFT JOIN inbox.sequence_declaration s ON s.name = t.sequence_name
     WHERE s.name IS NULL
    UNION ALL
    SELECT 'no diagram of ' || name FROM inbox.sequence_declaration
     WHERE seqinbox_diagram(name) NOT LIKE 'flowchart%t0%'
    UNION ALL
    SELECT 'no statistics' WHERE NOT EXISTS (
        SELECT FROM seqinbox_message_stats(), seqinbox_instance_stats())'''

# What the procedure may find to do, each time that it is called.
EXPIRED = '''
    INSERT INTO inbox.sequence_instance
        (name, context_id, state, created_at, retain_until, remove_after)
    SELECT 'Orders', gen_random_uuid()::text, state,
           now() - interval '9 days', now() - interval '2 days', remove_after
      FROM (VALUES ('OPEN', NULL), ('CLOSED', NULL), ('OPEN', now()))
        AS i (state, remove_after)'''


class Function(NamedTuple):
    name: str
    is_procedure: bool
    arguments: list         # names and types

    def call(self, values):
        call = f'pg_catalog.{self.name}({", ".join(values)})'
        if self.is_procedure:
            return f'CALL {call}'
        return f'SELECT r::text FROM {call} AS r'

    def valid_values(self):
        return [valid(name, type_name) for name, type_name in self.arguments]


def functions(connection):
    """The procedure comes last, for it removes what the others need.  Its
    results are arguments too, but are left out.
    """
    rows = connection.execute('''
        SELECT p.proname, p.prokind = 'p',
               coalesce(p.proargnames[1:p.pronargs], '{}'),
               ARRAY(SELECT format_type(a.type, NULL)
                       FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, n)
                      WHERE coalesce(p.proargmodes[a.n], 'i') = 'i'
                      ORDER BY a.n)
          FROM pg_proc p
          JOIN pg_depend d ON d.classid = 'pg_proc'::regclass
               AND d.objid = p.oid AND d.deptype = 'e'
          JOIN pg_extension e ON e.oid = d.refobjid
         WHERE e.extname = 'seqinbox' ORDER BY 2, 1''').fetchall()
    return [Function(name, is_procedure, list(zip(names, types)))
            for name, is_procedure, names, types in rows]


def documented_errors():
    """The SQLSTATEs that the reference names, by function."""
    text = REFERENCE.read_text(encoding='utf-8')
    sections = dict(re.findall(r'^### (seqinbox_\w+)\n(.*?)(?=^##|\Z)', text,
                               re.M | re.S))
    general = re.search(r'^## Errors\n(.*?)^## ', text, re.M | re.S).group(1)
    general = set(SQLSTATE.findall(general)) - IMPOSSIBLE

    def of(name):
        section = sections[name]
        referred = re.findall(r'those of \[?`?(seqinbox_\w+)', section)
        return set(SQLSTATE.findall(section)).union(*map(of, referred))
    return {name: of(name) | general for name in sections}


def without_refused(connection, values, kept):
    """Those of the values that can be written: the server itself refuses some
    of them, such as an infinite interval before version 17.
    """
    for value in values:
        if value not in kept:
            try:
                with connection.transaction():
                    connection.execute(f'SELECT {value} IS NULL')
                kept[value] = True
            except psycopg.errors.DataError:
                kept[value] = False
    return [value for value in values if kept[value]]


class Caller:
    """Makes calls, counts what comes of them, and collects the problems."""

    def __init__(self, connection):
        self.connection = connection
        self.documented = documented_errors()
        self.counts = collections.Counter()
        self.problems = []
        self.possible = {}

    def values(self, type_name):
        return without_refused(self.connection, nasty(type_name),
                               self.possible)

    def call(self, function, values, role=None, keep=False):
        """One call, and its SQLSTATE.  Unless it is to be kept, nothing stays
        of it but what a procedure has committed.
        """
        sql = function.call(values)
        allowed = self.documented.get(function.name, set())
        if role is not None:
            allowed = allowed | {'42501'}
        try:
            if function.is_procedure:
                self.connection.execute(EXPIRED)
                self.connection.execute(f'SET ROLE {role or "none"}')
                self.connection.execute(sql)
            else:
                with self.connection.transaction(force_rollback=not keep):
                    if role is not None:
                        self.connection.execute(f'SET LOCAL ROLE {role}')
                    self.connection.execute(sql).fetchall()
            sqlstate = '00000'
        except psycopg.Error as error:
            sqlstate = error.sqlstate
            if self.connection.closed:
                self.problems.append(f'connection lost: {error}: {sql[:2000]}')
                raise
            if sqlstate not in allowed:
                self.problems.append(
                    f'{sqlstate}: {str(error)[:500]}'
                    f' ({error.diag.source_file}): {sql[:2000]}')
        finally:
            if function.is_procedure and not self.connection.closed:
                self.connection.execute('RESET ROLE')
        self.counts[function.name, sqlstate] += 1
        return sqlstate

    def check_order(self):
        self.problems += [what for what, in self.connection.execute(DISORDER)]

    def report(self):
        names = sorted({name for name, _ in self.counts})
        for name in names:
            states = ', '.join(f'{count} {state}' for (other, state), count
                               in sorted(self.counts.items(),
                                         key=lambda item: item[0])
                               if other == name)
            print(f'{name}: {states}')


def call_systematically(connection):
    """Each function, with each value of each argument, while the others are
    such that the call succeeds.
    """
    caller = Caller(connection)
    for function in functions(connection):
        usual = function.valid_values()
        if caller.call(function, usual) != '00000' and \
                function.name != 'seqinbox_retry':
            caller.problems.append(f'{function.name} does not succeed')
        for place, (_, type_name) in enumerate(function.arguments):
            for value in caller.values(type_name):
                caller.call(function,
                            usual[:place] + [value] + usual[place + 1:])
        caller.check_order()
    return caller


def random_array(rng, caller, element_type, length):
    elements = [rng.choice(caller.values(element_type)) for _ in range(length)]
    array = f'ARRAY[{", ".join(elements)}]::{element_type}[]'
    return typed(array, f'{element_type}[]')


def random_value(rng, caller, usual, type_name, length):
    if rng.random() < 0.4:
        return usual
    if type_name.endswith('[]') and rng.random() < 0.8:
        return random_array(rng, caller, type_name[:-2], length)
    return rng.choice(caller.values(type_name))


def call_at_random(connection, seed, go_on):
    """Random functions with random arguments, as several roles; about half of
    what they do stays.
    """
    rng = random.Random(f'calls {seed}')
    caller = Caller(connection)
    known = functions(connection)
    done = 0
    while go_on(done) and not caller.problems:
        function = rng.choice(known)
        length = rng.choice([0, 1, 1, 2, 3])
        values = [random_value(rng, caller, usual, type_name, length)
                  for usual, (_, type_name) in zip(function.valid_values(),
                                                   function.arguments)]
        role = rng.choice([None, None, 'app', 'operator', 'observer'])
        # more inboxes, and rights for whoever there is, would stay for ever
        keep = (rng.random() < 0.5 and function.name not in
                ('seqinbox_create_inbox', 'seqinbox_grant'))
        caller.call(function, values, role, keep)
        done += 1
        if done % 500 == 0:
            caller.check_order()
    caller.check_order()
    return caller
