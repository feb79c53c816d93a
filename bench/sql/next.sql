\set instance 1000 + :n / :waiting
\set n :n + 1
SELECT * FROM seqinbox_next(:instance);
