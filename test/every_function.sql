-- A function that calls every function of the extension, but for the procedure,
-- in the inbox of a schema, along a search path, with names as they are given.
-- For the tests of strange names and of hostile paths: so no operator is used
-- here, and nothing without its schema.
CREATE SCHEMA every_function;

-- message types: of "name", and of "B" with the sub-type "name", which waits for
-- the former; "id" is for idempotence IDs and context IDs
CREATE FUNCTION every_function.call_all(
    inbox name, path text, name text, type_b text, id text, role name, document jsonb,
    OUT function text, OUT result text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    instance bigint;
    message bigint;
    letter bigint;
BEGIN
    function := 'seqinbox_create_inbox';
    PERFORM pg_catalog.seqinbox_create_inbox(inbox);
    PERFORM pg_catalog.set_config('search_path', path, true);
    result := 'done';
    RETURN NEXT;
    function := 'seqinbox_version';
    result := pg_catalog.seqinbox_version() IS NOT NULL;
    RETURN NEXT;
    function := 'seqinbox_declare';
    PERFORM pg_catalog.seqinbox_declare(document);
    result := 'done';
    RETURN NEXT;
    function := 'seqinbox_diagram';
    result := pg_catalog.substr(pg_catalog.seqinbox_diagram(name), 1, 12);
    RETURN NEXT;
    function := 'seqinbox_grant';
    PERFORM pg_catalog.seqinbox_grant(role, 'consumer'), pg_catalog.seqinbox_grant(role, 'operator'),
            pg_catalog.seqinbox_grant(role, 'observer');
    result := 'done';
    RETURN NEXT;

    function := 'seqinbox_receive';
    SELECT r.outcome, r.sequence_instance_id INTO result, instance
      FROM pg_catalog.seqinbox_receive(type_b, id, id, 'value', 'key', ARRAY[name], '{v}', name, name) AS r;
    RETURN NEXT;
    function := 'seqinbox_waiting';
    SELECT pg_catalog.concat_ws(', ', w.sequence_name, w.predecessor, w.predecessor_state) INTO result
      FROM pg_catalog.seqinbox_waiting() AS w;
    RETURN NEXT;
    function := 'seqinbox_is_releasable';
    result := pg_catalog.seqinbox_is_releasable(type_b, instance);
    RETURN NEXT;
    function := 'seqinbox_receive_batch';
    SELECT r.outcome INTO result
      FROM pg_catalog.seqinbox_receive_batch(ARRAY[name], ARRAY[id], ARRAY[id], '{v}', '{k}', '{1}',
                                             ARRAY[name], '{v}', ARRAY[name], ARRAY[name]) AS r;
    RETURN NEXT;
    function := 'seqinbox_next';
    SELECT pg_catalog.concat_ws(', ', n.message_type, n.header_names[1], n.topic, n.cluster_name) INTO result
      FROM pg_catalog.seqinbox_next(instance) AS n;
    RETURN NEXT;
    SELECT n.message_type INTO result FROM pg_catalog.seqinbox_next() AS n;
    RETURN NEXT;
    function := 'seqinbox_lookup';
    SELECT l.state INTO result FROM pg_catalog.seqinbox_lookup(type_b, id) AS l;
    RETURN NEXT;
    function := 'seqinbox_diagram';
    result := pg_catalog.strpos(pg_catalog.seqinbox_diagram(name, id), 'class t1 processed')::boolean;
    RETURN NEXT;

    function := 'seqinbox_open_instance';
    instance := pg_catalog.seqinbox_open_instance(type_b, id, '1 day');
    result := 'done';
    RETURN NEXT;
    function := 'seqinbox_claim';
    result := pg_catalog.seqinbox_claim(name, pg_catalog.concat(id, 'claimed'), instance);
    RETURN NEXT;
    result := pg_catalog.seqinbox_claim(name, pg_catalog.concat(id, 'window'));
    RETURN NEXT;
    function := 'seqinbox_try_claim';
    result := pg_catalog.seqinbox_try_claim(name, pg_catalog.concat(id, 'tried'), instance);
    RETURN NEXT;
    result := pg_catalog.seqinbox_try_claim(name, pg_catalog.concat(id, 'tried window'));
    RETURN NEXT;

    function := 'seqinbox_store';
    message := pg_catalog.seqinbox_store(name, pg_catalog.concat(id, 'stored'), instance, 'WAITING', 'v', 'k',
                                         ARRAY[name], '{v}', name, name, error => name);
    result := 'done';
    RETURN NEXT;
    function := 'seqinbox_fail_and_release';
    PERFORM pg_catalog.seqinbox_claim(name, pg_catalog.concat(id, 'stored'), instance);
    result := pg_catalog.seqinbox_fail_and_release(message, name, '1 hour');
    RETURN NEXT;
    function := 'seqinbox_retry';
    PERFORM pg_catalog.seqinbox_retry(message);
    result := 'done';
    RETURN NEXT;
    function := 'seqinbox_consume';
    PERFORM pg_catalog.seqinbox_consume(message);
    RETURN NEXT;
    function := 'seqinbox_consume_all';
    PERFORM pg_catalog.seqinbox_consume_all(instance);
    RETURN NEXT;
    function := 'seqinbox_expire';
    PERFORM pg_catalog.seqinbox_expire(message);
    RETURN NEXT;
    function := 'seqinbox_record_failure';
    message := pg_catalog.seqinbox_record_failure(name, pg_catalog.concat(id, 'failed'), id, name, 'v', 'k',
                                                  ARRAY[name], '{v}', name, name, retry_after => '1 hour');
    RETURN NEXT;
    function := 'seqinbox_message_stats';
    SELECT pg_catalog.count(*) INTO result FROM pg_catalog.seqinbox_message_stats() AS s;
    RETURN NEXT;
    function := 'seqinbox_instance_stats';
    SELECT pg_catalog.count(*) INTO result FROM pg_catalog.seqinbox_instance_stats() AS s;
    RETURN NEXT;
    function := 'seqinbox_dead_letter';
    letter := pg_catalog.seqinbox_dead_letter(message, name);
    result := 'done';
    RETURN NEXT;
    function := 'seqinbox_requeue';
    SELECT r.outcome, r.sequence_instance_id INTO result, instance FROM pg_catalog.seqinbox_requeue(letter) AS r;
    RETURN NEXT;
    function := 'seqinbox_close';
    PERFORM pg_catalog.seqinbox_close(instance);
    result := 'done';
    RETURN NEXT;
END
$$;

-- the document that goes with a name
CREATE FUNCTION every_function.document(name text) RETURNS jsonb LANGUAGE sql AS $$
SELECT jsonb_build_object('sequences', jsonb_build_array(jsonb_build_object(
           'name', name, 'retentionPeriod', '1 day', 'messages', jsonb_build_array(
               jsonb_build_object('type', name),
               jsonb_build_object('type', 'B', 'subType', name,
                                  'releaseCondition', jsonb_build_object('predecessor', name))))))
$$;

-- functions of the extension that call_all() does not call
CREATE VIEW every_function.not_called AS
SELECT p.proname
  FROM pg_proc p
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
  JOIN pg_proc a ON a.oid = 'every_function.call_all'::regproc
 WHERE e.extname = 'seqinbox' AND p.prokind = 'f' AND position('pg_catalog.' || p.proname || '(' IN a.prosrc) = 0;
