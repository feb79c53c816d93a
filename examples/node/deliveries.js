/*
 * deliveries.js: real GitHub webhook deliveries, as a consumer meets them.
 *
 * The payloads are those of the npm package @octokit/webhooks-examples.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

const events = createRequire(import.meta.url)('@octokit/webhooks-examples');

/** All deliveries: { id, type, contextId, payload }. */
export function loadDeliveries() {
  return events.flatMap(({ name, examples }) =>
    examples.map((payload, index) => ({
      id: deliveryId(name, index),
      type: payload.action ? `${name}.${payload.action}` : name,
      contextId: contextId(payload),
      payload,
    })),
  );
}

/*
 * GitHub sends a delivery's uuid in the header X-GitHub-Delivery, which the
 * package doesn't hold. Some of its payloads are equal, so the place in the
 * package identifies a delivery, not the payload.
 */
function deliveryId(event, index) {
  return createHash('sha256')
    .update(`${event} ${index}`)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

/** The issue or pull request that a payload is about, null if there is none. */
function contextId({ repository, issue, pull_request: pull }) {
  const subject = issue ?? pull;
  return repository && subject
    ? `${repository.full_name}#${subject.number}`
    : null;
}
