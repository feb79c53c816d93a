"""Random and mutated declarations.

Each document is accepted or refused as the description of the format says,
which is written down here once more, in another language.  What was accepted
comes out of the tables and the diagram as it went in, and can be declared
again without any change.  What was refused has changed nothing.
"""

import copy
import json
import pathlib
import random
import re
import sys

import psycopg

sys.path.append(str(pathlib.Path(__file__).parents[1] / 'torture'))
from world import World  # noqa: E402

LONGEST = 512           # bytes of a name
IGNORED = {'topic', 'topics', 'clusterName', 'contextIdExtractor',
           'messageFilter'}
REFUSED = {'22023', '54001'}
NOT_JSON = {'22P02', '22P05', '22003', '54000', '54001'}

STATE = '''
    SELECT jsonb_build_array(
        (SELECT jsonb_agg(to_jsonb(s) ORDER BY name COLLATE "C")
           FROM inbox.sequence_declaration s),
        (SELECT jsonb_agg(to_jsonb(t) ORDER BY message_type COLLATE "C")
           FROM inbox.message_type_declaration t))::text'''
EXPORT = '''
    SELECT jsonb_build_object('sequences', jsonb_agg(
        jsonb_strip_nulls(jsonb_build_object('name', s.name,
            'retentionPeriod', s.retention_period::text,
            'sequencingStartTimestamp', s.sequencing_start_timestamp))
        || jsonb_build_object('messages', (
            SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                       'type', CASE WHEN t.sub_type IS NULL
                                    THEN t.message_type
                                    ELSE left(t.message_type,
                                              -length('.' || t.sub_type)) END,
                       'subType', t.sub_type,
                       'releaseCondition', t.release_condition))
                             ORDER BY t.place)
              FROM inbox.message_type_declaration t
             WHERE t.sequence_name = s.name))))::text
      FROM inbox.sequence_declaration s WHERE s.name = ANY (%s)'''
VALID_INTERVAL = '''
    CREATE FUNCTION pg_temp.valid_interval(value text) RETURNS boolean
    LANGUAGE plpgsql AS $$
    BEGIN
        RETURN value::interval > '0' AND isfinite(now() + value::interval);
    EXCEPTION WHEN data_exception THEN
        RETURN false;
    END $$'''
VALID_TIMESTAMP = '''
    CREATE FUNCTION pg_temp.valid_timestamp(value text) RETURNS boolean
    LANGUAGE plpgsql AS $$
    BEGIN
        RETURN value::timestamptz IS NOT NULL;
    EXCEPTION WHEN data_exception THEN
        RETURN false;
    END $$'''

NAMES = ['', ' ', '.', 'A', 'A.B', 'Type00', 'Type00.X', 'X', 'Sequence0',
         'seqinbox.idempotence', 'null', '\u00fc' * 256, '\u00fc' * 257,
         'x' * 512, 'x' * 513, '\U0001f600', '"', "'", '\\', '%s%n', '$inbox',
         '\x01\n', '\u202e', '\ufeff', '-- ', '</script>', '["]', 'x' * 100000]
INTERVALS = ['1 day', 'P7D', 'PT0S', '0', '-1 day', '1', '1e10', 'infinity',
             '-infinity', 'P', 'PT', '1 month -31 days', '290000 years',
             '300000 years', '178956970 years', '178956971 years',
             '1 microsecond', '@ 1 day ago', 'day', '1 dya', '1:2:3:4',
             '99999999999999999999 days']
TIMESTAMPS = ['2999-12-31T00:00:00Z', '2030-02-30', 'infinity', '-infinity',
              'now', 'epoch', '0001-01-01 BC', '294277-01-01',
              '2030-01-01 00:00 Mars/Phobos', '2030-01-01T00:00:00+99']
KEYS = ['name', 'retentionPeriod', 'messages', 'type', 'subType', 'sequences',
        'releaseCondition', 'predecessor', 'and', 'or', 'topic', 'topics',
        'clusterName', 'contextIdExtractor', 'messageFilter',
        'sequencingStartTimestamp', 'subTypeResolvers', 'not', 'Name', '',
        'k' * 100000]


class Model:
    """What is declared, and which document may be declared beside it."""

    def __init__(self, connection):
        self.connection = connection
        self.declared = {}      # types and sub-types, by sequence
        connection.execute(VALID_INTERVAL)
        connection.execute(VALID_TIMESTAMP)

    def asks(self, function, value):
        return self.connection.execute(
            f'SELECT pg_temp.{function}(%s)', [value]).fetchone()[0]

    def accepts(self, document):
        if not has_only(document, {'sequences', 'subTypeResolvers'}):
            return False
        sequences = document.get('sequences')
        if not isinstance(sequences, list) or not sequences:
            return False
        if not all(self.accepts_sequence(sequence) for sequence in sequences):
            return False
        names = [sequence['name'] for sequence in sequences]
        if len(set(names)) < len(names):
            return False
        others = {name: types for name, types in self.declared.items()
                  if name not in names}
        together = others | types_of(document)
        return are_distinct([pair for types in together.values()
                             for pair in types])

    def accepts_sequence(self, sequence):
        return (has_only(sequence, IGNORED | {
                    'name', 'retentionPeriod', 'messages',
                    'sequencingStartTimestamp'})
                and is_name(sequence.get('name'))
                and sequence['name'] != 'seqinbox.idempotence'
                and is_name(sequence.get('retentionPeriod'))
                and self.asks('valid_interval', sequence['retentionPeriod'])
                and ('sequencingStartTimestamp' not in sequence
                     or is_name(sequence['sequencingStartTimestamp'])
                     and self.asks('valid_timestamp',
                                   sequence['sequencingStartTimestamp']))
                and isinstance(sequence.get('messages'), list)
                and len(sequence['messages']) > 0
                and all(map(is_message, sequence['messages']))
                and has_no_cycle(sequence['messages']))

    def accept(self, document):
        self.declared |= types_of(document)

    def reset(self):
        self.connection.execute('DELETE FROM inbox.sequence_declaration')
        self.declared = {}


def has_only(value, keys):
    return isinstance(value, dict) and set(value) <= keys


def is_name(value):
    return isinstance(value, str) and 0 < len(value.encode()) <= LONGEST


def qualified(message):
    sub_type = message.get('subType')
    return message['type'] if sub_type is None else \
        f'{message["type"]}.{sub_type}'


def types_of(document):
    return {sequence['name']: [(message['type'], message.get('subType'))
                               for message in sequence['messages']]
            for sequence in document['sequences']}


def are_distinct(types):
    """No qualified type twice, and none both with and without a sub-type."""
    names = [name if sub_type is None else f'{name}.{sub_type}'
             for name, sub_type in types]
    plain = {name for name, sub_type in types if sub_type is None}
    divided = {name for name, sub_type in types if sub_type is not None}
    return len(set(names)) == len(names) and not plain & divided


def is_message(message):
    return (has_only(message, IGNORED | {'type', 'subType',
                                         'releaseCondition'})
            and is_name(message.get('type'))
            and ('subType' not in message or is_name(message['subType']))
            and len(qualified(message).encode()) <= LONGEST
            and ('releaseCondition' not in message
                 or is_condition(message['releaseCondition'])))


def is_condition(condition):
    if not isinstance(condition, dict) or len(condition) != 1:
        return False
    [(kind, operand)] = condition.items()
    if kind == 'predecessor':
        return is_name(operand)
    if kind not in ('and', 'or') or not isinstance(operand, list):
        return False
    if len(operand) < 2 or not all(map(is_condition, operand)):
        return False
    names = [part['predecessor'] for part in operand if 'predecessor' in part]
    return len(set(names)) == len(names)


def predecessors(condition):
    if condition is None:
        return set()
    [(kind, operand)] = condition.items()
    if kind == 'predecessor':
        return {operand}
    return set().union(*map(predecessors, operand))


def arrows_of(condition):
    """How many arrows lead to a message: one from each predecessor, and one
    from each "and" and "or".
    """
    if condition is None:
        return 0
    [(kind, operand)] = condition.items()
    return 1 + (0 if kind == 'predecessor' else sum(map(arrows_of, operand)))


def has_no_cycle(messages):
    """Takes out what waits for nothing more until nothing is left."""
    left = {qualified(message): predecessors(message.get('releaseCondition'))
            for message in messages}
    while left:
        free = {name for name, names in left.items() if not names & set(left)
                and names <= set(map(qualified, messages))}
        if not free:
            return False
        left = {name: names for name, names in left.items()
                if name not in free}
    return True


def nodes(value, path=()):
    """The paths to all parts of a document."""
    yield path
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        return
    for key, part in parts:
        yield from nodes(part, path + (key,))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def random_scalar(rng):
    return rng.choice([None, True, 0, -1, 10**30, 1.5, [], {}, [[]],
                       rng.choice(NAMES), rng.choice(INTERVALS),
                       rng.choice(TIMESTAMPS)])


def mutate(rng, document):
    """Changes one place of a document; returns the document."""
    path = rng.choice(list(nodes(document)))
    value = at(document, path)
    part = copy.deepcopy(at(document, rng.choice(list(nodes(document)))))
    if path and rng.random() < 0.5:
        parent = at(document, path[:-1])
        kind = rng.randrange(4)
        if kind == 0:
            del parent[path[-1]]
        elif kind == 1 and isinstance(parent, list):
            parent.insert(path[-1], copy.deepcopy(value))
        elif kind == 1:
            parent[rng.choice(KEYS)] = copy.deepcopy(value)
        elif path[-1] == 'retentionPeriod' and kind == 2:
            parent[path[-1]] = rng.choice(INTERVALS)
        elif isinstance(value, str):
            parent[path[-1]] = rng.choice(NAMES)
        else:
            parent[path[-1]] = random_scalar(rng)
    elif isinstance(value, dict):
        value[rng.choice(KEYS)] = rng.choice([part, random_scalar(rng)])
    elif isinstance(value, list):
        value.insert(rng.randrange(len(value) + 1),
                     rng.choice([part, random_scalar(rng)]))
        rng.shuffle(value)
    elif path:
        at(document, path[:-1])[path[-1]] = rng.choice(
            [part, random_scalar(rng)])
    return document


def mutate_text(rng, text):
    """Changes a document's text, so that it may no longer be JSON."""
    place = rng.randrange(len(text))
    end = place + rng.choice([0, 1, 1, 10])
    new = rng.choice(['', '"', '\\u0000', '\\ud800', '{', '}', '[', ']', ',',
                      ':', 'null', '1e999999', '\x01', '\U0001f600', '""',
                      '"name": "A", ', '"type": "A", ', '\\', '-', '/*'])
    return text[:place] + new + text[end:]


def deep_condition(rng, types, depth):
    condition = {'predecessor': types[0]}
    for _ in range(depth):
        condition = {rng.choice(['and', 'or']):
                     rng.sample([condition, {'predecessor': types[1]}], 2)}
    return condition


def random_document(rng):
    document = World(rng.random()).documents()[0]
    sequence = rng.choice(document['sequences'])
    if rng.random() < 0.3:
        sequence['retentionPeriod'] = rng.choice(INTERVALS)
    if rng.random() < 0.3:
        sequence['sequencingStartTimestamp'] = rng.choice(TIMESTAMPS)
    types = [qualified(message) for message in sequence['messages']]
    if len(types) > 1 and rng.random() < 0.1:
        sequence['messages'].append({
            'type': 'Deep', 'releaseCondition':
            deep_condition(rng, types, rng.choice([1, 10, 100]))})
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 6])):
        document = mutate(rng, document)
    return document


def declare(connection, text):
    """The SQLSTATE with which a text is refused, or 00000."""
    try:
        connection.execute('SELECT seqinbox_declare(%s::jsonb)', [text])
    except psycopg.Error as error:
        if connection.closed:
            raise
        return error.sqlstate
    return '00000'


def as_json(connection, text):
    """The text as the server reads it; None when it is no jsonb."""
    try:
        return connection.execute('SELECT %s::jsonb::text',
                                  [text]).fetchone()[0]
    except psycopg.Error as error:
        if error.sqlstate not in NOT_JSON:
            raise
        return None


def state(connection):
    return connection.execute(STATE).fetchone()[0]


def without_time(text):
    return re.sub(r'"declared_at": "[^"]*"', '', text)


def same_document(given, exported):
    """Is the one that came out the one that went in?  Intervals and
    timestamps are written anew, so the server has compared them.
    """
    def essence(document):
        return {sequence['name']: [
            (message['type'], message.get('subType'),
             message.get('releaseCondition'))
            for message in sequence['messages']]
            for sequence in document['sequences']}
    return essence(given) == essence(exported)


def check_accepted(connection, document):
    """What does not come out as it went in."""
    names = [sequence['name'] for sequence in document['sequences']]
    exported = connection.execute(EXPORT, [names]).fetchone()[0]
    before = state(connection)
    if not same_document(document, json.loads(exported)):
        yield f'came out as {exported}'
    for sequence in document['sequences']:
        same = connection.execute(
            'SELECT retention_period = %s::interval'
            ' FROM inbox.sequence_declaration WHERE name = %s',
            [sequence['retentionPeriod'], sequence['name']]).fetchone()
        if same != (True,):
            yield f'retention period of {sequence["name"]}'
        yield from check_diagram(connection, sequence)
    if declare(connection, exported) != '00000':
        yield f'is refused when it comes back: {exported}'
    elif without_time(state(connection)) != without_time(before):
        yield f'is changed when it comes back: {exported}'


def check_diagram(connection, sequence):
    diagram = connection.execute('SELECT seqinbox_diagram(%s)',
                                 [sequence['name']]).fetchone()[0]
    lines = diagram.split('\n')
    types = sum(re.match(r'    t\d+\["[^"]*"\]$', line) is not None
                for line in lines)
    arrows = sum(re.match(r'    [tg]\d+ --> [tg]\d+$', line) is not None
                 for line in lines)
    wanted = sum(arrows_of(message.get('releaseCondition'))
                 for message in sequence['messages'])
    if types != len(sequence['messages']) or arrows != wanted:
        yield f'has the diagram {diagram}'


def check_document(connection, model, text):
    """Declares a document, and yields what is wrong with the outcome."""
    read = as_json(connection, text)
    if read is None:
        return
    document = json.loads(read)
    accepted = model.accepts(document)
    before = state(connection)
    sqlstate = declare(connection, text)
    if sqlstate == '00000':
        if not accepted:
            yield 'is accepted'
            return
        model.accept(document)
        model.counts['accepted'] += 1
        yield from check_accepted(connection, document)
    else:
        model.counts['refused'] += 1
        if accepted or sqlstate not in REFUSED:
            yield f'is refused with {sqlstate}'
        if state(connection) != before:
            yield 'is refused, but has changed something'


def check_depth(connection, depth):
    """Conditions so deep that only the server looks at them."""
    text = ('{"sequences": [{"name": "S", "retentionPeriod": "1 day",'
            ' "messages": [{"type": "A"}, {"type": "B"}, {"type": "C",'
            ' "releaseCondition": ' + '{"or": [{"predecessor": "A"}, ' * depth
            + '{"predecessor": "B"}' + ']}' * depth + '}]}]}')
    if as_json(connection, text) is None:
        return
    before = state(connection)
    sqlstate = declare(connection, text)
    if sqlstate not in ('00000', '54001'):
        yield f'{sqlstate} at a depth of {depth}'
    elif sqlstate != '00000' and state(connection) != before:
        yield f'has changed something at a depth of {depth}'
    elif sqlstate == '00000':
        for call in ("seqinbox_diagram('S')",
                     "seqinbox_receive('C', 'c', 'c', NULL)",
                     'seqinbox_waiting()'):
            try:
                with connection.transaction(force_rollback=True):
                    connection.execute(f'SELECT {call}')
            except psycopg.errors.StatementTooComplex:
                pass


def fuzz_declarations(connection, seed, go_on):
    rng = random.Random(f'declarations {seed}')
    model = Model(connection)
    model.counts = {'accepted': 0, 'refused': 0}
    problems = []
    done = 0
    for depth in (10, 100, 1000, 3000, 6000, 10000, 30000, 100000):
        problems += check_depth(connection, depth)
    model.reset()
    while go_on(done) and not problems:
        if rng.random() < 0.2:
            model.reset()
        text = json.dumps(random_document(rng))
        while rng.random() < 0.2:
            text = mutate_text(rng, text)
        problems += [f'{problem}: {text[:3000]}' for problem in
                     check_document(connection, model, text)]
        done += 1
    model.reset()
    print(f'declarations: {done}, {model.counts["accepted"]} accepted,'
          f' {model.counts["refused"]} refused')
    if 0 in model.counts.values():
        problems.append('the declarations are all of one kind')
    return problems
