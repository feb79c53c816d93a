# seqinbox_receive against a client-side inbox, where each round trip takes
# 500 microseconds.

. bench/receivers.sh

network=500
for connections in 1 4 16
do
    variant="connections: $connections"
    compare "$variant" messages/s client_side seqinbox_receive seqinbox_receive_in_block
    goal "$variant" seqinbox_receive '>=' 8 client_side
done
