"""Values for arguments, written as SQL: those that work, and nasty ones.

A function's arguments are read from the catalogue, so a new function, and a
new argument of a type that is known here, is tested without a word about it.
Run as a program, this prints SQL that makes tables of the nasty ones.
"""

LONG_NAME = "repeat('x', 63)"
TRACEPARENT = "'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'"
DOCUMENT = """'{"sequences": [{"name": "Invoices", "retentionPeriod": "1 day",
    "messages": [{"type": "Invoiced"}]}]}'"""

# What makes a call succeed, by the argument's name.  Lists of values stand
# for the elements of an array.
VALID = {
    'batch_size': '1000', 'cluster_name': "'main'", 'cluster_names': "'main'",
    'context_id': "'order-20'", 'context_ids': "'order-20'",
    'dead_letter_id': '(SELECT min(id) FROM inbox.dead_letter'
                      ' WHERE payload_buffered)',
    'declaration': DOCUMENT, 'error': "'error'", 'header_counts': '1',
    'header_names': "'h'", 'header_values': "'v'::bytea",
    'id': "(SELECT min(id) FROM inbox.sequenced_message"
          " WHERE state = 'WAITING')",
    'idempotence_id': "'new'", 'idempotence_ids': "'new'",
    'inbox_schema': "'inbox'", 'keep_dead_letters': "'90 days'",
    'max_duration': "'1 minute'", 'message_key': "'key'",
    'message_keys': "'key'::bytea", 'message_type': "'Shipped'",
    'message_types': "'Shipped'", 'message_uuid': 'gen_random_uuid()',
    'message_uuids': 'gen_random_uuid()', 'message_value': "'value'",
    'message_values': "'value'::bytea", 'privilege': "'observer'",
    'reason': "'reason'", 'removal_delay': "'1 day'",
    'retention_period': "'1 day'", 'retry_after': "'1 hour'",
    'role': "'observer'", 'sequence_instance_id':
    "(SELECT min(id) FROM inbox.sequence_instance"
    " WHERE context_id = 'order-20')",
    'sequence_name': "'Orders'", 'state': "'WAITING'", 'topic': "'orders'",
    'topics': "'orders'", 'traceparent': TRACEPARENT,
    'traceparents': TRACEPARENT}

# What should do no harm, by type.
NASTY = {
    'text': [
        "''", "' '", "'x'", "'-'", "'null'", "'.'", "'A.B.'", "'$inbox'",
        "'%s%n%1$d'", "'$1'", "E'\\x01\\t\\r\\n'", "E'\\x7f'",
        "'\"; DROP TABLE inbox.sequence_instance; --'",
        "''' OR true --'", "'\\'", "'{}'", "'{\"a\": [}'",
        "repeat('x', 512)", "repeat('x', 513)", "repeat('x', 2048)",
        "repeat('x', 2049)", "repeat('x', 8192)", "repeat('x', 8193)",
        "repeat('x', 3000000)", "repeat(U&'\\00fc', 256)",
        "repeat(U&'\\+01f600', 512)", "U&'\\0301'", "U&'\\202e'",
        "U&'\\feff'", "U&'\\ffff'", "U&'\\+10ffff'",
        "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 64) n)",
        "'Placed'", "'Packed'", "'Traced'", "'Webhook'", "'Arrived'",
        "'Checked'", "'Checked.STOCK'", "'order-1'", "'packed-15'",
        "'order-15'", "'return-1'", "'expired-1'", "'failed-12'",
        "'Orders'", "'Returns'", "'seqinbox.idempotence'", "'PROCESSED'",
        "'FAILED'", "'processed'", "'consumer'", "'operator'",
        TRACEPARENT, "'ff' || repeat('-', 53)", "repeat('0', 55)"],
    'bigint': [
        '0', '-1', '1', '2147483648', '9223372036854775807',
        '-9223372036854775808',
        '(SELECT min(id) FROM inbox.sequence_instance)',
        "(SELECT max(id) FROM inbox.sequence_instance"
        " WHERE name = 'seqinbox.idempotence')",
        "(SELECT min(id) FROM inbox.sequence_instance"
        " WHERE state = 'CLOSED')",
        "(SELECT min(id) FROM inbox.sequence_instance"
        " WHERE context_id = 'order-15')",
        "(SELECT min(id) FROM inbox.sequenced_message"
        " WHERE state = 'PROCESSED')",
        "(SELECT max(id) FROM inbox.sequenced_message"
        " WHERE state = 'FAILED')",
        "(SELECT min(id) FROM inbox.sequenced_message"
        " WHERE state = 'FAILED')",
        "(SELECT max(id) FROM inbox.sequenced_message"
        " WHERE state = 'WAITING')",
        '(SELECT max(id) FROM inbox.dead_letter)'],
    'integer': ['0', '-1', '1', '2', '100000', '100001', '2147483647',
                '-2147483648'],
    'interval': [
        "'0'", "'-1 microsecond'", "'1 microsecond'", "'-1 second'",
        "'1 month -31 days'", "'-1 month 31 days'", "'10000 years'",
        "'290000 years'", "'178956970 years'", "'-178956970 years'",
        "'2147483647 days'", "'-2147483648 days'",
        "'2562047788:00:54.775807'", "'-2562047788:00:54.775807'",
        "'infinity'", "'-infinity'", "'NaN'"],
    'uuid': ["'00000000-0000-0000-0000-000000000000'",
             "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    'bytea': ["''", "'\\x00'", "'\\xff00ff'", "'\\x' || repeat('00', 3000)",
              "convert_to(repeat('x', 3000000), 'UTF8')"],
    'name': [
        "''", "' '", "'public'", "'none'", "'pg_x'", "'pg_catalog'",
        "'pg_temp'", "'pg_toast'", "'information_schema'", "'current_user'",
        "'session_user'", "'app'", "'nobody'", "'select'", "'$inbox'",
        "'\"'", "'a\"b''c\\d'", "'a.b'", "'%s'", LONG_NAME,
        "repeat(U&'\\00fc', 31) || 'x'", "U&'\\+01f600'"],
    'jsonb': [
        "'null'", "'0'", "'\"\"'", "'[]'", "'{}'", "'{\"sequences\": []}'",
        "'{\"sequences\": [{}]}'", "'1e100000'", "'[[[[[[[[]]]]]]]]'",
        "to_jsonb(repeat('x', 3000000))",
        "jsonb_build_object(repeat('k', 3000000), 1)",
        "jsonb_build_object('sequences', repeat('x', 3000000))",
        "(repeat('[', 5000) || repeat(']', 5000))::jsonb"]}


def array_literals(element_type, elements):
    """Arrays of each shape, of these elements."""
    def array(*parts):
        return f'ARRAY[{", ".join(parts)}]::{element_type}[]'
    one, two = elements[0], elements[-1]
    return [
        f"'{{}}'::{element_type}[]", array('NULL'), array(one),
        array(one, 'NULL'), array('NULL', one), array(one, two),
        array(one, one), array(f'ARRAY[{one}]', f'ARRAY[{two}]'),
        f'ARRAY[ARRAY[{one}, {two}]]::{element_type}[]',
        f'array_fill({one}::{element_type}, ARRAY[0])',
        f'array_fill({one}::{element_type}, ARRAY[1], ARRAY[7])',
        f'array_fill({one}::{element_type}, ARRAY[1], ARRAY[-2147483648])',
        f'array_fill({one}::{element_type}, ARRAY[2], ARRAY[2147483645])',
        f'array_fill({one}::{element_type}, ARRAY[1, 1, 1, 1, 1, 1])',
        f'array_fill({one}::{element_type}, ARRAY[1000])',
        f'array_fill(NULL::{element_type}, ARRAY[1])',
        f'array_fill(NULL::{element_type}, ARRAY[2], ARRAY[0])',
    ] + [array(element) for element in elements]


def typed(value, type_name):
    return f'({value})::{type_name}'


def valid(name, type_name):
    """A value with which a call can succeed; nothing for what is unknown."""
    if name not in VALID:
        return typed(nasty(type_name)[0], type_name)
    if type_name.endswith('[]'):
        return typed(f'ARRAY[{VALID[name]}]', type_name)
    return typed(VALID[name], type_name)


def nasty(type_name):
    """All values that there are for a type; a type without any is an error."""
    if type_name.endswith('[]'):
        element_type = type_name[:-2]
        values = array_literals(element_type, NASTY[element_type])
    else:
        values = NASTY[type_name]
    return ['NULL'] + [typed(value, type_name) for value in values]


def as_tables():
    """SQL that makes a table nasty_TYPE of each type's values, but for those
    that the server refuses.
    """
    for type_name in list(NASTY) + ['text[]', 'bytea[]', 'integer[]', 'uuid[]']:
        table = 'nasty_' + type_name.replace('[]', '_array')
        yield f'CREATE TABLE {table} (value {type_name});'
        for value in nasty(type_name):
            yield (f'DO $do$ BEGIN INSERT INTO {table} VALUES ({value});'
                   ' EXCEPTION WHEN data_exception THEN NULL; END $do$;')


if __name__ == '__main__':
    print('\n'.join(as_tables()))
