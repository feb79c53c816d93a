"""The checks, over the inbox and the business table.

A check is a query for what must not be there.  Those of the first kind hold
in every snapshot, whatever is going on: all that they compare was committed
in one transaction, or under the lock of its instance.  Those of the second
kind hold when everything has been delivered and drained.
"""

import re
from datetime import timedelta

from servers import NO_SPACE
from world import holds

POSTPONED = timedelta(seconds=1)    # by a drain, POSTPONE_MS in src/drain.c

# Expired messages are processed without an effect, and those that had failed
# have no claim before they are delivered again.
EXPIRED = '''
EXISTS (SELECT FROM operator_action o
         WHERE (o.message_type, o.idempotence_id)
             = (m.message_type, m.idempotence_id) AND o.action = 'EXPIRE')'''

ALWAYS = {
    'more than one effect': '''
        SELECT message_type, idempotence_id, context_id, count(*)
          FROM effect GROUP BY 1, 2, 3 HAVING count(*) > 1''',
    'effect before its release condition held': '''
        SELECT * FROM effect WHERE NOT in_order''',
    'effect of a message that is not processed': '''
        SELECT e.*, m.state FROM effect e
          LEFT JOIN sequenced_message m USING (message_type, idempotence_id)
         WHERE m.state IS DISTINCT FROM 'PROCESSED' ''',
    'processed message without effect': f'''
        SELECT m.* FROM sequenced_message m
          LEFT JOIN effect e USING (message_type, idempotence_id)
         WHERE m.state = 'PROCESSED' AND e.number IS NULL
           AND NOT {EXPIRED}''',
    'more than one record': '''
        SELECT message_type, idempotence_id, count(*)
          FROM sequenced_message GROUP BY 1, 2 HAVING count(*) > 1''',
    'waiting or processed message without claim': f'''
        SELECT m.* FROM sequenced_message m
          LEFT JOIN sequential_inbox_idempotence c
              USING (message_type, idempotence_id, sequence_instance_id)
         WHERE m.state <> 'FAILED' AND c.created_at IS NULL
           AND NOT (m.state = 'PROCESSED' AND {EXPIRED})''',
    'claim without record, or of a failed message': '''
        SELECT c.*, m.state FROM sequential_inbox_idempotence c
          LEFT JOIN sequenced_message m USING (message_type, idempotence_id)
         WHERE m.state IS NULL OR m.state = 'FAILED' ''',
    'waiting message without payload, or processed message with one': '''
        SELECT m.id, m.message_type, m.idempotence_id, m.state, count(b.id)
          FROM sequenced_message m
          LEFT JOIN buffered_message b ON b.sequenced_message_id = m.id
         GROUP BY m.id
        HAVING count(b.id) > 1
            OR m.state = 'WAITING' AND count(b.id) <> 1
            OR m.state = 'PROCESSED' AND count(b.id) <> 0''',
    'header without payload': '''
        SELECT h.* FROM message_header h
          LEFT JOIN buffered_message b ON b.id = h.buffered_message_id
         WHERE b.id IS NULL''',
}

IN_THE_END = {
    'waiting or failed message': '''
        SELECT * FROM sequenced_message WHERE state <> 'PROCESSED' ''',
    'processed message without claim': '''
        SELECT m.* FROM sequenced_message m
          LEFT JOIN sequential_inbox_idempotence c
              USING (message_type, idempotence_id, sequence_instance_id)
         WHERE c.created_at IS NULL''',
    'open or due instance': '''
        SELECT * FROM sequence_instance
         WHERE state <> 'CLOSED' AND name <> 'seqinbox.idempotence'
            OR release_due_at IS NOT NULL''',
    'buffered message': 'SELECT * FROM buffered_message',
    'header': 'SELECT * FROM message_header',
    'dead letter': 'SELECT * FROM dead_letter',
}

AFTER_REMOVAL = {
    'instance that should have been removed': '''
        SELECT * FROM sequence_instance
         WHERE name <> 'seqinbox.idempotence' ''',
    'message of a removed instance': 'SELECT * FROM sequenced_message',
    'claim of a removed instance': '''
        SELECT * FROM sequential_inbox_idempotence''',
    'dead letter of a processed message': 'SELECT * FROM dead_letter',
}

# When an instance has something to release, now or at its retry, it has to
# be due by then; otherwise nobody would look.  What an operator has marked by
# its pending_action is found without that.  The condition is the one that is
# declared at that moment.  A drain that meets a declaration at work comes back
# after a second.
TO_RELEASE = '''
SELECT m.message_type, m.idempotence_id, i.context_id, m.state, m.retry_at,
       d.release_condition,
       i.id AS sequence_instance_id, i.release_due_at,
       i.release_due_at <= greatest(m.retry_at, clock_timestamp() + %s) AS due,
       array(SELECT DISTINCT p.message_type FROM sequenced_message p
              WHERE p.sequence_instance_id = i.id
                AND p.state = 'PROCESSED') AS done
  FROM sequenced_message m
  JOIN sequence_instance i ON i.id = m.sequence_instance_id
  JOIN message_type_declaration d USING (message_type)
 WHERE m.pending_action IS NULL
   AND (m.state = 'WAITING' OR m.state = 'FAILED' AND m.retry_at IS NOT NULL)
'''


def check_always(connection, world):
    """Problems in one snapshot, at any time."""
    delay = POSTPONED if len(world.conditions) > 1 else timedelta()
    with connection.transaction():
        connection.execute('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')
        problems = run(connection, ALWAYS)
        problems += [
            f'nobody would release: {row}'
            for row in connection.execute(TO_RELEASE, [delay])
            if not row.due and holds(row.release_condition, row.done)]
    return problems


def check_acknowledged(connection, report):
    """Problems with what has been reported as committed."""
    handled = set(connection.execute(
        'SELECT message_type, idempotence_id, context_id FROM effect'))
    recorded = set(connection.execute('''
        SELECT m.message_type, m.idempotence_id, i.context_id
          FROM sequenced_message m
          JOIN sequence_instance i ON i.id = m.sequence_instance_id'''))
    return ([f'acknowledged effect was lost: {message}'
             for message in set(report.effects) - handled] +
            [f'acknowledged record was lost: {message}'
             for message in set(report.buffered) - recorded])


def check_removal(connection):
    """Problems when housekeeping had to remove everything."""
    return run(connection, AFTER_REMOVAL)


def check_end(connection, world, messages):
    """Problems when all of these messages have been delivered and drained."""
    problems = check_always(connection, world) + run(connection, IN_THE_END)
    handled = set(connection.execute(
        'SELECT message_type, idempotence_id, context_id FROM effect'))
    expired = set(connection.execute(
        'SELECT message_type, idempotence_id, context_id FROM operator_action'
        " WHERE action = 'EXPIRE'"))
    messages = set(messages)
    problems += [f'lost: {message}'
                 for message in messages - handled - expired]
    problems += [f'unknown: {effect}' for effect in handled - messages]
    return problems


def run(connection, checks):
    return [f'{name}: {row}' for name, query in checks.items()
            for row in connection.execute(query)]


def check_log(lines, kills, disk_was_full):
    """Problems in the servers' logs, in which a prefix gives the SQLSTATE."""
    if disk_was_full:
        # the server gives up when it can't write its WAL
        panics = [line for line in lines
                  if 'PANIC: ' in line and NO_SPACE in line]
        aborts = [line for line in lines if 'by signal 6' in line]
        excused = set(panics + aborts[:len(panics)])
        lines = [line for line in lines if line not in excused]
    problems = [line for line in lines
                if re.search(r'PANIC: |TRAP: | XX\d{3} |by signal [^9]', line)
                or NO_SPACE in line and not disk_was_full]
    died = sum('was terminated by signal 9' in line for line in lines)
    if died > kills:
        problems.append(f'{died} processes were killed, but {kills} here')
    return problems
