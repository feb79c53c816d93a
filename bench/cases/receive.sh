# seqinbox_receive of messages without a condition, with durable commits,
# against a client-side inbox; and without, where the processor decides, against
# the same in PL/pgSQL.

. bench/receivers.sh

for connections in 1 4 16
do
    variant="durable, connections: $connections"
    compare "$variant" messages/s client_side seqinbox_receive seqinbox_receive_in_block
    goal "$variant" seqinbox_receive '>=' 4 client_side
done

settings='-c synchronous_commit=off'
for connections in 1 4
do
    variant="not durable, connections: $connections"
    compare "$variant" messages/s plpgsql_receive seqinbox_receive
    goal "$variant" seqinbox_receive '>=' 1.1 plpgsql_receive
done
