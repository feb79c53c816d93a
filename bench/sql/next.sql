\set instance 1001 + :n / :waiting
\set n :n + 1
SELECT * FROM seqinbox_next(:instance);
