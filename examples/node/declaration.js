/*
 * declaration.js: what is declared of the webhooks, and when a message may be
 * handled. The inbox decides that for a consumer; here it is worked out once
 * more, to check the inbox.
 */
import { readFileSync } from 'node:fs';

export const declaration = JSON.parse(
  readFileSync(new URL('../webhooks-declaration.json', import.meta.url)),
);

const declared = new Map(
  declaration.sequences.flatMap(({ name, messages }) =>
    messages.map(({ type, subType, releaseCondition }) => [
      `${type}.${subType}`,
      { sequence: name, condition: releaseCondition },
    ]),
  ),
);

/** The predecessors that a type still misses when others were processed. */
export function missing(type, processed) {
  const missed = ({ predecessor, and, or }) => {
    if (predecessor) return processed.has(predecessor) ? [] : [predecessor];
    const parts = (and ?? or).map(missed);
    return or && parts.some((part) => part.length === 0) ? [] : parts.flat();
  };
  const condition = declared.get(type)?.condition;
  return condition ? missed(condition) : [];
}

/**
 * What must still be waiting when everything has been delivered and no more can
 * be handled: { id, predecessor, state }, a row for each missing predecessor.
 */
export function leftWaiting(deliveries) {
  const instances = new Map();
  for (const delivery of deliveries) {
    if (delivery.contextId === null) continue;
    const { sequence } = declared.get(delivery.type);
    const key = JSON.stringify([sequence, delivery.contextId]);
    if (!instances.has(key)) instances.set(key, []);
    instances.get(key).push(delivery);
  }
  return [...instances.values()].flatMap(leftInInstance);
}

function leftInInstance(deliveries) {
  const received = new Set(deliveries.map(({ type }) => type));
  const processed = new Set();
  for (let before = -1; before < processed.size;) {
    before = processed.size;
    for (const type of received) {
      if (missing(type, processed).length === 0) processed.add(type);
    }
  }
  return deliveries.flatMap(({ id, type }) =>
    missing(type, processed).map((predecessor) => ({
      id,
      predecessor,
      state: received.has(predecessor) ? 'WAITING' : 'NOT_RECEIVED',
    })),
  );
}
