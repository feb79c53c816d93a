"""What is declared and delivered, all of it from a seed."""

import random
import zlib
from typing import NamedTuple


class Message(NamedTuple):
    type: str
    idempotence_id: str
    context_id: str


def holds(condition, done):
    """Does a release condition hold when these types have been processed?

    The server's answer is checked against this one.
    """
    if condition is None:
        return True
    [(kind, operand)] = condition.items()
    if kind == 'predecessor':
        return operand in done
    combine = {'and': all, 'or': any}[kind]
    return combine(holds(part, done) for part in operand)


def random_condition(rng, types):
    """A condition on some of the types; none of them occurs twice."""
    if len(types) == 1 or rng.random() < 0.4:
        return {'predecessor': rng.choice(types)}
    types = rng.sample(types, len(types))
    parts = rng.randint(2, min(3, len(types)))
    return {rng.choice(['and', 'or']):
            [random_condition(rng, types[n::parts]) for n in range(parts)]}


def payload(message):
    """Value, key and headers that every delivery of a message brings.

    The key is never missing, for seqinbox_record_failure() takes a tombstone
    without key and headers as a payload that was left out.
    """
    rng = random.Random(zlib.crc32(repr(message).encode()))
    value = rng.choice([None, b'', repr(message).encode(), bytes(5000)])
    headers = [(rng.choice(['a', 'b']), rng.choice([None, b'', b'value']))
               for _ in range(rng.randint(0, 3))]
    return (value, message.idempotence_id.encode(),
            [name for name, _ in headers], [value for _, value in headers])


def message_document(type, sub_type, name, conditions):
    document = {'type': type}
    if sub_type:
        document['subType'] = sub_type
    if conditions[name]:
        document['releaseCondition'] = conditions[name]
    return document


class World:
    """Some declared sequences, and messages for ever new contexts of them.

    Of the declarations there are one or two variants with conditions of their
    own, between which a run changes.
    """

    def __init__(self, seed):
        self.rng = random.Random(f'world {seed}')
        # per variant: of each qualified message type
        self.conditions = [{} for _ in range(self.rng.randint(1, 2))]
        self.sequences = {f'Sequence{n}': self._declare(n)
                          for n in range(self.rng.randint(2, 5))}

    def _declare(self, number):
        """The messages of a sequence: (type, sub-type, qualified type)."""
        types = []
        messages = []
        for n in range(self.rng.randint(2, 6)):
            conditions = [self._condition(types) for _ in self.conditions]
            # the sub-types come to the others only now: none can be the
            # predecessor of the other, as their condition is the same
            names = []
            for sub_type in self.rng.choice([[None], [None], ['X', 'Y']]):
                type = f'Type{number}{n}'
                name = f'{type}.{sub_type}' if sub_type else type
                for variant, condition in zip(self.conditions, conditions):
                    variant[name] = condition
                messages.append((type, sub_type, name))
                names.append(name)
            types += names
        return self.rng.sample(messages, len(messages))

    def _condition(self, types):
        if types and self.rng.random() < 0.8:
            return random_condition(self.rng, types)
        return None

    def may_be_handled(self, type, done):
        """By any of the variants."""
        return any(holds(variant[type], done) for variant in self.conditions)

    def documents(self):
        """One for each variant, as seqinbox_declare() takes them."""
        return [{'sequences': [
            {'name': name, 'retentionPeriod': '1 day',
             'messages': [message_document(*message, conditions)
                          for message in messages]}
            for name, messages in self.sequences.items()]}
            for conditions in self.conditions]

    def types(self, sequence):
        return [name for _, _, name in self.sequences[sequence]]

    def messages(self, context_id):
        """All messages of a context that one or two sequences share."""
        sequences = self.rng.sample(list(self.sequences),
                                    self.rng.randint(1, 2))
        return [Message(type, f'{context_id} {n}', context_id)
                for sequence in sequences
                for type in self.types(sequence)
                for n in range(self.rng.choice([1, 1, 2]))]
