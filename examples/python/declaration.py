"""What is declared of the webhooks, and when a message may be handled.

The inbox decides that for a consumer; here it is worked out once more, to check
the inbox.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from consumer import Message


class Declaration:
    def __init__(self, document: dict[str, Any]) -> None:
        self._sequences: dict[str, str] = {}
        self._conditions: dict[str, dict[str, Any]] = {}
        for sequence in document["sequences"]:
            for message in sequence["messages"]:
                type = f"{message['type']}.{message['subType']}"
                self._sequences[type] = sequence["name"]
                if "releaseCondition" in message:
                    self._conditions[type] = message["releaseCondition"]

    def missing(self, type: str, processed: Collection[str]) -> set[str]:
        """The predecessors that a type misses when others were processed."""
        if type not in self._conditions:
            return set()
        return _missing(self._conditions[type], processed)

    def left_waiting(self, messages: Iterable[Message]) -> set[tuple[str, str, str]]:
        """What waits when all was delivered and no more can be handled.

        A tuple for each missing predecessor: the message's id, the predecessor
        and its state.
        """
        instances = defaultdict(list)
        for message in messages:
            if message.context_id is not None:
                key = self._sequences[message.type], message.context_id
                instances[key].append(message)
        return {row for part in instances.values() for row in self._left(part)}

    def _left(self, messages: list[Message]) -> Iterator[tuple[str, str, str]]:
        received = {message.type for message in messages}
        processed: set[str] = set()
        while released := {
            type for type in received - processed if not self.missing(type, processed)
        }:
            processed |= released
        for message in messages:
            for predecessor in self.missing(message.type, processed):
                state = "WAITING" if predecessor in received else "NOT_RECEIVED"
                yield message.id, predecessor, state


def _missing(condition: dict[str, Any], processed: Collection[str]) -> set[str]:
    match condition:
        case {"predecessor": predecessor}:
            return {predecessor} - set(processed)
        case {"and": operands}:
            return set().union(*(_missing(part, processed) for part in operands))
        case {"or": operands}:
            parts = [_missing(part, processed) for part in operands]
            return set().union(*parts) if all(parts) else set()
        case _:
            raise ValueError(condition)
