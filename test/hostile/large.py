"""Calls with arguments as large as a value can be, one in each call."""

from calls import Caller, functions, without_refused
from values import typed

# A text or bytea has at most 1 GB, less a byte and the four of its header; a
# string of a jsonb 256 MB less a byte.  Repeated is a megabyte: repeat() takes
# its time for each part.
MB = "repeat('x', 1024 * 1024)"
LARGEST = f"(repeat({MB}, 1023) || repeat('x', 1024 * 1024 - 5))"
JSONB_LARGEST = f'repeat({MB}, 255)'

LARGE = {
    'text': [LARGEST],
    'bytea': [f"convert_to({LARGEST}, 'UTF8')",
              f"convert_to(repeat({MB}, 300), 'UTF8')"],
    'jsonb': [f'to_jsonb({JSONB_LARGEST})',
              f'jsonb_build_object({JSONB_LARGEST}, 1)',
              f"jsonb_build_object('sequences', {JSONB_LARGEST})"],
    'text[]': ["array_fill('x'::text, ARRAY[40000000])",
               f'ARRAY[repeat({MB}, 1000)]'],
    'bytea[]': ["array_fill('x'::bytea, ARRAY[40000000])",
                f"ARRAY[convert_to(repeat({MB}, 1000), 'UTF8')]"],
    'integer[]': ['array_fill(1, ARRAY[134217727])',
                  'array_fill(2147483647, ARRAY[1000000])'],
    'uuid[]': ["array_fill('00000000-0000-0000-0000-000000000000'::uuid,"
               " ARRAY[60000000])"]}


def call_with_large(connection):
    caller = Caller(connection)
    kept = {}
    for function in functions(connection):
        usual = function.valid_values()
        for place, (name, type_name) in enumerate(function.arguments):
            values = [typed(value, type_name)
                      for value in LARGE.get(type_name, [])]
            for value in without_refused(connection, values, kept):
                sqlstate = caller.call(
                    function, usual[:place] + [value] + usual[place + 1:])
                print(f'{function.name}({name} => {value[:60]}):'
                      f' {sqlstate}', flush=True)
        caller.check_order()
    call_with_many(caller)
    return caller


def call_with_many(caller):
    """As many deliveries as arrays can hold, in all arrays that are needed."""
    [batch] = [function for function in functions(caller.connection)
               if function.name == 'seqinbox_receive_batch']
    for count in (4_000_000, 20_000_000):
        values = [typed(f"array_fill('{element}'::{type_name[:-2]},"
                        f" ARRAY[{count}])", type_name)
                  for element, (_, type_name)
                  in zip(['Shipped', 'id', 'c', 'v'], batch.arguments)]
        sqlstate = caller.call(batch, values)
        print(f'{count} deliveries in a batch: {sqlstate}', flush=True)
