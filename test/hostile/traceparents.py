"""Random and mutated traceparents.

Each goes through seqinbox_receive_batch() and comes out of seqinbox_next().
What comes out is what the W3C recommendation makes of it, and stays the same
when it goes through once more.
"""

import random
import re

# of version 00 there are exactly four fields, of later ones at least
WELL_FORMED = re.compile(
    r'(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})'
    r'-([0-9a-f]{2})(-.*)?', re.S | re.A)
BATCH = 200
ALPHABET = '0123456789abcdefABCDEFgx-_ +\t\n\x01\x7f\u00fc\u0660\uff10\U0001f600'


def expected(traceparent):
    if traceparent is None:
        return None
    match = WELL_FORMED.fullmatch(traceparent)
    if match is None or (match[1] == '00' and match[5] is not None):
        return None
    return f'00-{match[2]}-{match[3]}-0{int(match[4], 16) & 1}'


def random_hex(rng, digits):
    return rng.choice(['0' * digits, 'f' * digits, '0' * (digits - 1) + '1']
                      + [f'{rng.getrandbits(4 * digits):0{digits}x}'] * 5)


def well_formed(rng):
    return (f'{rng.choice(["00", "00", "01", "cc", "fe", "ff"])}'
            f'-{random_hex(rng, 32)}-{random_hex(rng, 16)}'
            f'-{random_hex(rng, 2)}'
            f'{rng.choice(["", "", "-", "-extra", "x", "-" + "z" * 300])}')


def mutated(rng, text):
    for _ in range(rng.choice([0, 0, 1, 1, 2, 5])):
        place = rng.randrange(len(text) + 1)
        end = place + rng.choice([0, 1, 1, 3])
        new = ''.join(rng.choice(ALPHABET)
                      for _ in range(rng.choice([0, 1, 1, 3])))
        text = text[:place] + new + text[end:]
    return text


def random_traceparent(rng):
    kind = rng.random()
    if kind < 0.02:
        return None
    if kind < 0.1:
        return ''.join(rng.choice(ALPHABET)
                       for _ in range(rng.choice([0, 1, 54, 55, 56, 1000])))
    return mutated(rng, well_formed(rng))


def through_inbox(connection, traceparents):
    """What comes out, in the same order."""
    count = len(traceparents)
    with connection.transaction(force_rollback=True):
        instances = connection.execute(
            'SELECT DISTINCT sequence_instance_id FROM seqinbox_receive_batch('
            " array_fill('Traced'::text, ARRAY[%(count)s]),"
            ' ARRAY(SELECT n::text FROM generate_series(1, %(count)s) AS n),'
            " array_fill('trace'::text, ARRAY[%(count)s]),"
            ' array_fill(NULL::bytea, ARRAY[%(count)s]),'
            ' traceparents => %(traceparents)s)',
            {'count': count, 'traceparents': traceparents}).fetchall()
        [(instance,)] = instances
        connection.execute('SELECT seqinbox_consume_all(%s)', [instance])
        rows = [connection.execute(
            'SELECT idempotence_id, traceparent FROM seqinbox_next(%s)',
            [instance]).fetchone() for _ in range(count)]
    found = {int(number): traceparent for number, traceparent in rows}
    return [found[n] for n in range(1, count + 1)]


def fuzz_traceparents(connection, seed, go_on):
    rng = random.Random(f'traceparents {seed}')
    problems = []
    done = accepted = 0
    while go_on(done) and not problems:
        given = [random_traceparent(rng) for _ in range(BATCH)]
        first = through_inbox(connection, given)
        second = through_inbox(connection, first)
        for traceparent, once, twice in zip(given, first, second):
            if once != expected(traceparent) or twice != once:
                problems.append(f'{traceparent!r} becomes {once!r},'
                                f' then {twice!r}')
            accepted += once is not None
        done += BATCH
    print(f'traceparents: {done}, {accepted} well-formed')
    if accepted == 0 or accepted == done:
        problems.append('the traceparents are all of one kind')
    return problems
