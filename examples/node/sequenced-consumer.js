/*
 * sequenced-consumer.js: handles each message once, and not before those that
 * have to come before it. What arrives too early waits in the inbox, which
 * hands it out when its time has come.
 */
import { setTimeout } from 'node:timers/promises';

import { transaction } from './database.js';

const OBJECT_NOT_IN_PREREQUISITE_STATE = '55000';

export class SequencedConsumer {
  #pool;
  #handle;
  #retryAfter;
  #pollInterval;

  /**
   * handle(client, { type, id, contextId, payload }) must do its writes with
   * the client that it is given. When it throws, the message is offered again
   * after retryAfter.
   */
  constructor(
    pool,
    handle,
    { retryAfter = '10 seconds', pollInterval = 1000 } = {},
  ) {
    this.#pool = pool;
    this.#handle = handle;
    this.#retryAfter = retryAfter;
    this.#pollInterval = pollInterval;
  }

  /**
   * Takes in a delivery, and calls acknowledge() when the inbox has it. If that
   * was not called, it must be delivered again. An error after that needs
   * nothing but a worker, which does what is left.
   */
  async consume(delivery, acknowledge) {
    let received;
    try {
      received = await transaction(this.#pool, async (client) => {
        const received = await receive(client, delivery);
        if (received.process) await this.#handle(client, delivery);
        return received;
      });
    } catch (error) {
      await this.#recordFailure(delivery, error);
    }
    await acknowledge();

    if (received?.release_due) await this.drain(received.sequence_instance_id);
  }

  /** Handles what waits in a sequence instance and may be released. */
  async drain(instance) {
    while (await this.#handleNext(instance));
  }

  /**
   * Handles what may be released anywhere: retries that have come due, and what
   * a consumer left that died after it had acknowledged. At least one worker
   * must be running; more of them don't disturb each other. Start it again
   * when it throws, since then the database was out of reach.
   */
  async work(signal) {
    while (!signal.aborted) {
      if (!(await this.#handleNext(null))) await setTimeout(this.#pollInterval);
    }
  }

  /* Handles one message that may be released; false if there is none. */
  async #handleNext(instance) {
    let message;
    try {
      return await transaction(this.#pool, async (client) => {
        message = await next(client, instance);
        if (message) await this.#handle(client, message);
        return message !== undefined;
      });
    } catch (error) {
      if (!message) throw error;
      await this.#settle(
        error,
        'SELECT seqinbox_fail_and_release($1, $2, $3)',
        [message.record, error.message, this.#retryAfter],
      );
      return true;
    }
  }

  /*
   * Without a context there is no sequence to record the failure in, and only
   * another delivery helps. The same goes for a failure that can't be recorded.
   */
  async #recordFailure({ type, id, contextId, payload }, error) {
    if (contextId === null) throw error;
    await this.#settle(
      error,
      `SELECT seqinbox_record_failure($1, $2, $3, $4, message_value => $5,
                                      retry_after => $6)`,
      [type, id, contextId, error.message, toBytes(payload), this.#retryAfter],
    );
  }

  /*
   * Between the rollback and this, another consumer may have taken the message
   * over and settled it. Then there is no failure to record any more.
   */
  async #settle(error, sql, parameters) {
    try {
      await this.#pool.query(sql, parameters);
    } catch (refusal) {
      if (refusal.code === OBJECT_NOT_IN_PREREQUISITE_STATE) return;
      throw new AggregateError(
        [error, refusal],
        `${error.message}; not recorded: ${refusal.message}`,
      );
    }
  }
}

/*
 * A delivery without a context has nothing that it could come before or after,
 * but may come twice all the same. Its type need not be declared.
 */
async function receive(client, { type, id, contextId, payload }) {
  const { rows } =
    contextId === null
      ? await client.query('SELECT seqinbox_claim($1, $2) AS process', [
          type,
          id,
        ])
      : await client.query('SELECT * FROM seqinbox_receive($1, $2, $3, $4)', [
          type,
          id,
          contextId,
          toBytes(payload),
        ]);
  return rows[0];
}

async function next(client, instance) {
  const { rows } = await client.query('SELECT * FROM seqinbox_next($1)', [
    instance,
  ]);
  return rows.map((row) => ({
    record: row.id,
    type: row.message_type,
    id: row.idempotence_id,
    contextId: row.context_id,
    payload: JSON.parse(row.message_value),
  }))[0];
}

function toBytes(payload) {
  return Buffer.from(JSON.stringify(payload));
}
