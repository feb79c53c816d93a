-- The decision of seqinbox_receive in PL/pgSQL, for the same tables, found by
-- search_path. What a duplicate costs is not compared, so there is no look at
-- the claim before the insert.

-- Takes the processed types, so that a condition is one query, however deep.
CREATE FUNCTION plpgsql_condition_holds(condition jsonb, processed text[])
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    operand jsonb;
BEGIN
    IF condition ? 'predecessor' THEN
        RETURN condition ->> 'predecessor' = ANY (processed);
    ELSIF condition ? 'and' THEN
        FOR operand IN SELECT jsonb_array_elements(condition -> 'and') LOOP
            IF NOT plpgsql_condition_holds(operand, processed) THEN
                RETURN false;
            END IF;
        END LOOP;
        RETURN true;
    END IF;
    FOR operand IN SELECT jsonb_array_elements(condition -> 'or') LOOP
        IF plpgsql_condition_holds(operand, processed) THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;

CREATE FUNCTION plpgsql_require(value text, name text, max_length int)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF value IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = format('argument "%s" must not be null', name);
    ELSIF value = '' OR octet_length(value) > max_length THEN
        RAISE invalid_parameter_value USING MESSAGE = format('argument "%s" is empty or too long', name);
    END IF;
END
$$;

CREATE FUNCTION plpgsql_receive(
    a_message_type text,
    a_idempotence_id text,
    a_context_id text,
    message_value bytea,
    message_key bytea DEFAULT NULL,
    header_names text[] DEFAULT NULL,
    header_values bytea[] DEFAULT NULL,
    a_topic text DEFAULT NULL,
    a_cluster_name text DEFAULT NULL,
    message_uuid uuid DEFAULT NULL,
    traceparent text DEFAULT NULL,
    OUT process boolean,
    OUT outcome text,
    OUT id bigint,
    OUT sequence_instance_id bigint,
    OUT attempts int,
    OUT release_due boolean)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    declared record;
    instance record;
    existing record;
    processed text[];
    buffered_id bigint;
    is_complete boolean;
    trace text[];
BEGIN
    PERFORM plpgsql_require(a_message_type, 'message_type', 512);
    PERFORM plpgsql_require(a_idempotence_id, 'idempotence_id', 2048);
    process := false;
    attempts := 0;
    release_due := false;
    IF a_context_id IS NULL THEN
        process := true;
        outcome := 'UNSEQUENCED';
        RETURN;
    END IF;
    PERFORM plpgsql_require(a_context_id, 'context_id', 2048);
    IF current_setting('idle_in_transaction_session_timeout') = '0' THEN
        PERFORM set_config('idle_in_transaction_session_timeout', '10min', true);
    END IF;

    SELECT t.release_condition, s.name, s.retention_period,
           coalesce(s.sequencing_start_timestamp > clock_timestamp(), false) AS recording
      INTO declared
      FROM message_type_declaration t
      JOIN sequence_declaration s ON s.name = t.sequence_name
     WHERE t.message_type = a_message_type;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('message type "%s" is not declared', a_message_type);
    END IF;

    LOOP
        SELECT i.id, i.state INTO instance
          FROM sequence_instance i
         WHERE i.name = declared.name AND i.context_id = a_context_id
           FOR KEY SHARE;
        EXIT WHEN FOUND;
        INSERT INTO sequence_instance
               (name, context_id, state, created_at, retain_until, created_in_recording_mode)
        VALUES (declared.name, a_context_id, 'OPEN', clock_timestamp(),
                clock_timestamp() + declared.retention_period, declared.recording)
            ON CONFLICT (name, context_id) DO NOTHING
        RETURNING sequence_instance.id, state INTO instance;
        EXIT WHEN FOUND;
    END LOOP;
    sequence_instance_id := instance.id;

    INSERT INTO sequential_inbox_idempotence
           (message_type, idempotence_id, sequence_instance_id, created_at)
    VALUES (a_message_type, a_idempotence_id, instance.id, clock_timestamp())
        ON CONFLICT (message_type, idempotence_id) DO NOTHING;
    IF NOT FOUND THEN
        outcome := 'DUPLICATE';
    END IF;

    SELECT m.id, m.state, m.sequence_instance_id, m.attempts INTO existing
      FROM sequenced_message m
     WHERE m.message_type = a_message_type AND m.idempotence_id = a_idempotence_id
     ORDER BY m.state = 'PROCESSED' DESC, m.state = 'WAITING' DESC, m.created_at DESC, m.id DESC
     LIMIT 1;
    IF FOUND THEN
        id := existing.id;
        attempts := existing.attempts;
        IF outcome IS NOT NULL OR existing.state <> 'FAILED' THEN
            outcome := 'DUPLICATE';
            sequence_instance_id := existing.sequence_instance_id;
            RETURN;
        END IF;
    ELSIF outcome IS NOT NULL THEN
        sequence_instance_id := NULL;
        RETURN;
    END IF;

    IF declared.recording THEN
        outcome := 'RECORDED';
    ELSIF declared.release_condition IS NULL OR instance.state = 'CLOSED' THEN
        outcome := 'PROCESS';
    ELSE
        SELECT array_agg(p.message_type) INTO processed
          FROM jsonb_path_query(declared.release_condition, 'strict $.**.predecessor') AS c (type)
         CROSS JOIN LATERAL (
               SELECT m.message_type
                 FROM sequenced_message m
                WHERE m.sequence_instance_id = instance.id
                  AND m.message_type = c.type #>> '{}'
                  AND m.state = 'PROCESSED'
                LIMIT 1) AS p;
        outcome := CASE WHEN plpgsql_condition_holds(declared.release_condition, processed)
                        THEN 'PROCESS' ELSE 'BUFFERED' END;
    END IF;
    process := outcome = 'PROCESS';

    IF traceparent IS NOT NULL THEN
        trace := regexp_match(traceparent, '^00-([0-9a-f]{16})([0-9a-f]{16})-([0-9a-f]{16})-[0-9a-f][0-9a-f]$');
    END IF;
    IF id IS NULL THEN
        INSERT INTO sequenced_message
               (message_type, idempotence_id, sequence_instance_id, state, created_at, topic, cluster_name,
                sequenced_message_id, trace_id_high, trace_id, span_id, trace_id_string)
        VALUES (a_message_type, a_idempotence_id, instance.id,
                CASE WHEN outcome = 'BUFFERED' THEN 'WAITING' ELSE 'PROCESSED' END, clock_timestamp(),
                coalesce(a_topic, ''), coalesce(a_cluster_name, ''), coalesce(message_uuid, gen_random_uuid()),
                ('x' || trace[1])::bit(64)::bigint, ('x' || trace[2])::bit(64)::bigint,
                ('x' || trace[3])::bit(64)::bigint, trace[1] || trace[2])
        RETURNING sequenced_message.id INTO id;
    ELSE
        UPDATE sequenced_message m
           SET state = CASE WHEN outcome = 'BUFFERED' THEN 'WAITING' ELSE 'PROCESSED' END,
               state_changed_at = clock_timestamp(), retry_at = NULL, pending_action = NULL
         WHERE m.id = existing.id;
        DELETE FROM buffered_message b WHERE b.sequenced_message_id = existing.id;
    END IF;

    IF outcome = 'BUFFERED' THEN
        INSERT INTO buffered_message (sequence_instance_id, sequenced_message_id, message_key, message_value)
        VALUES (instance.id, id, message_key, message_value)
        RETURNING buffered_message.id INTO buffered_id;
        IF header_names IS NOT NULL THEN
            INSERT INTO message_header (buffered_message_id, header_name, header_value)
            SELECT buffered_id, h.name, h.value
              FROM unnest(header_names, header_values) WITH ORDINALITY AS h (name, value, place)
             ORDER BY h.place;
        END IF;
        release_due := true;
    ELSE
        SELECT EXISTS (
               SELECT 1 FROM sequenced_message m
                WHERE m.sequence_instance_id = instance.id
                  AND (m.state = 'WAITING' OR m.state = 'FAILED' AND m.retry_at <= clock_timestamp())),
               NOT EXISTS (
               SELECT 1 FROM message_type_declaration t
                WHERE t.sequence_name = declared.name
                  AND NOT EXISTS (
                      SELECT 1 FROM sequenced_message m
                       WHERE m.sequence_instance_id = instance.id
                         AND m.message_type = t.message_type
                         AND m.state = 'PROCESSED'))
          INTO release_due, is_complete;
        IF is_complete AND NOT release_due THEN
            UPDATE sequence_instance i SET state = 'CLOSED', closed_at = clock_timestamp()
             WHERE i.id = instance.id AND i.state = 'OPEN';
        END IF;
    END IF;
    IF release_due THEN
        UPDATE sequence_instance i SET release_due_at = now()
         WHERE i.id = instance.id AND (i.release_due_at IS NULL OR i.release_due_at > now());
    END IF;
END
$$;
