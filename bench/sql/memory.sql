-- As many deliveries as the variable deliveries says, in one session, each in a
-- transaction of its own, in a hundred parts; and after each part the session's
-- own memory in kB. (PL/pgSQL keeps some bytes for each COMMIT till its block
-- ends.)

SELECT format($part$DO $do$
BEGIN
    FOR n IN 1 .. %1$s LOOP
        PERFORM seqinbox_receive('Order' || n %% 10, '%2$s-' || n, '%2$s-' || n / 10, 'v');
        COMMIT;
    END LOOP;
END $do$$part$, :deliveries / 100, part),
       $$SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s+(\d+)')$$
  FROM generate_series(1, 100) part
\gexec
