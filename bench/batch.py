"""Takes in batches of 100 messages, in contexts of ten, on one connection:

    python3 bench/batch.py receive_batch|copy SECONDS

The variables PGHOST, PGOPTIONS and so on name the server and the inbox. A
batch is one call of seqinbox_receive_batch; or the same rows by COPY, in one
transaction and one round trip. What is measured is the time from sending to
the last answer, so that Python has little part in it. Prints the number of
messages, and messages per second.
"""

import random
import sys
import time

from psycopg import pq

SIZE = 100
CALL = b"""SELECT * FROM seqinbox_receive_batch($1, $2, $3, $4)"""
COPY = b"""BEGIN;
COPY sequence_instance (id, name, context_id, state, created_at, retain_until) FROM STDIN;
COPY sequenced_message (id, message_type, idempotence_id, sequence_instance_id, state, created_at,
    topic, cluster_name, sequenced_message_id) FROM STDIN;
COPY sequential_inbox_idempotence (message_type, idempotence_id, sequence_instance_id, created_at) FROM STDIN;
COMMIT"""
NOW = '2026-01-01 12:00:00'
LATER = '2026-01-08 12:00:00'


def random_id():
    return str(random.getrandbits(63))


def make_batch():
    """Lists of types, IDs and contexts."""
    contexts = [random_id() for _ in range(SIZE // 10)]
    return ([f'Order{n % 10}' for n in range(SIZE)],
            [random_id() for _ in range(SIZE)],
            [contexts[n // 10] for n in range(SIZE)])


def array(elements):
    return ('{' + ','.join(elements) + '}').encode()


def receive_parameters(batch, _):
    types, ids, contexts = batch
    return [array(types), array(ids), array(contexts), array(['"{order: 17}"'] * SIZE)]


def receive(connection, parameters):
    result = connection.exec_prepared(b'receive', parameters)
    if result.ntuples != SIZE or any(result.get_value(n, 2) != b'PROCESS' for n in range(SIZE)):
        sys.exit(result.error_message.decode() or 'not all messages are to be processed')


def rows(*rows_of_columns):
    return ''.join('\t'.join(row) + '\n' for row in rows_of_columns).encode()


def copy_rows(batch, number):
    """The rows of the three tables. The IDs that they need are counted here."""
    types, ids, contexts = batch
    instances = [str(1000 + number * (SIZE // 10) + n // 10 + 1) for n in range(SIZE)]
    return [rows(*((instances[n], 'Orders', contexts[n], 'OPEN', NOW, LATER)
                   for n in range(0, SIZE, 10))),
            rows(*((str(number * SIZE + n), types[n], ids[n], instances[n], 'PROCESSED', NOW,
                    '', '', f'{random.getrandbits(128):032x}') for n in range(SIZE))),
            rows(*((types[n], ids[n], instances[n], NOW) for n in range(SIZE)))]


def copy(connection, tables):
    connection.send_query(COPY)
    while result := connection.get_result():
        if result.status == pq.ExecStatus.COPY_IN:
            connection.put_copy_data(tables.pop(0))
            connection.put_copy_end()
        elif result.status != pq.ExecStatus.COMMAND_OK:
            sys.exit(result.error_message.decode())


def main(contender, seconds):
    connection = pq.PGconn.connect(b'')
    if connection.status != pq.ConnStatus.OK:
        sys.exit(connection.error_message.decode())
    if contender == 'copy':
        prepare, work = copy_rows, copy
    else:
        connection.prepare(b'receive', CALL)
        prepare, work = receive_parameters, receive

    batches = 0
    elapsed = 0.0
    while elapsed < seconds:
        given = prepare(make_batch(), batches)
        start = time.perf_counter()
        work(connection, given)
        elapsed += time.perf_counter() - start
        batches += 1
    print(batches * SIZE, batches * SIZE / elapsed)


main(sys.argv[1], float(sys.argv[2]))
