"""Inboxes whose tables are not what they should be.

Anybody can make a schema with such tables and call the functions in it.  A
number must not be taken for a pointer then.  So a column gets another type,
its rows a value of that type, and every function is called: what it says is
its own affair, but it must be an error that can be expected, or a result.
"""

import random

import psycopg

from calls import functions

# as far from a valid address as can be
TYPES = {'bigint': '9223372036854775807', 'integer': '2147483647',
         'boolean': 'true', 'name': "repeat('x', 63)", 'bytea': "'\\xff'",
         'text': "'x'", 'varchar': "'x'", 'jsonb': "'[1]'",
         'timestamptz': "'infinity'", 'interval': "'1 day'",
         'uuid': "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
         'text[]': "'{x}'", 'bigint[]': "'{9223372036854775807}'",
         'point': "'(1,2)'", '"char"': "'x'", 'numeric': '1e20'}
CLAIM = 'sequential_inbox_idempotence'

COLUMNS = '''
    SELECT c.relname, a.attname
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'inbox'::regnamespace AND c.relkind = 'r'
       AND a.attnum > 0 AND NOT a.attisdropped
     ORDER BY 1, 2'''


def change(connection, table, column, type_name):
    """Another type, and the indexes that are looked for by name or shape."""
    value = TYPES[type_name]
    connection.execute(
        f'ALTER TABLE inbox.{table} DROP COLUMN {column} CASCADE;'
        f' ALTER TABLE inbox.{table} ADD {column} {type_name}'
        f' NOT NULL DEFAULT {value}')
    if table == CLAIM:
        connection.execute(
            f'DELETE FROM inbox.{CLAIM} a USING inbox.{CLAIM} b'
            ' WHERE a.ctid < b.ctid')
        if column in ('message_type', 'idempotence_id'):
            connection.execute(f'ALTER TABLE inbox.{CLAIM} ADD PRIMARY KEY'
                               ' (message_type, idempotence_id)')


def problems_of(connection, known, usual, changed):
    with connection.transaction(force_rollback=True):
        try:
            with connection.transaction():
                change(connection, *changed)
        except psycopg.Error:
            return          # there is no such index
        for function in known:
            try:
                with connection.transaction():
                    connection.execute(
                        function.call(usual[function.name])).fetchall()
            except psycopg.Error as error:
                if connection.closed:
                    raise RuntimeError(
                        f'{changed}: {function.name}: {error}') from error
                if error.sqlstate.startswith('XX'):
                    yield f'{changed}: {function.name}: {error}'


def call_with_other_types(connection, seed, go_on):
    rng = random.Random(f'tables {seed}')
    known = [function for function in functions(connection)
             if not function.is_procedure]
    # the values are read now: later, the tables may not have them
    usual = {function.name: [
        connection.execute(f'SELECT quote_nullable({value})'
                           ).fetchone()[0] + f'::{type_name}'
        for value, (_, type_name) in zip(function.valid_values(),
                                         function.arguments)]
        for function in known}
    changes = [(table, column, type_name)
               for table, column in connection.execute(COLUMNS).fetchall()
               for type_name in TYPES]
    # those that have proved to be dangerous come first
    rng.shuffle(changes)
    changes.sort(key=lambda change: change[0] != CLAIM
                 and change[1] not in ('message_value', 'header_values')
                 or change[2] not in ('bigint', 'name'))
    problems = []
    done = 0
    while go_on(done) and not problems and done < len(changes):
        problems += problems_of(connection, known, usual, changes[done])
        done += 1
    print(f'tables: {done} of {len(changes)} changes')
    return problems
