-- Each context belongs to any one of the sequences.
\set n :n + 1
\set id hash(:client_id * 100000000 + :n, :turn)
\set context hash(:client_id * 100000000 + :n / 10, :turn)
\set sequence mod(abs(:context), :sequences)
\set type :n % 10
SELECT * FROM seqinbox_receive('S' || :sequence || 'T' || :type, :id, :context, '{"order": 17}');
