-- An empty inbox, named by the variable inbox. Its sequence has ten types
-- without a condition; one that has to wait for all of them, more or less; and
-- one that never comes, so that no instance is ever complete.

SET client_min_messages = warning;
DROP SCHEMA IF EXISTS :"inbox" CASCADE;
SELECT seqinbox_create_inbox(:'inbox');
SET search_path = :inbox;
SELECT seqinbox_declare('{"sequences": [{"name": "Orders", "retentionPeriod": "7 days", "messages": [
    {"type": "Order0"}, {"type": "Order1"}, {"type": "Order2"}, {"type": "Order3"}, {"type": "Order4"},
    {"type": "Order5"}, {"type": "Order6"}, {"type": "Order7"}, {"type": "Order8"}, {"type": "Order9"},
    {"type": "OrderDone", "releaseCondition": {"and": [
        {"predecessor": "Order0"},
        {"or": [{"predecessor": "Order1"}, {"predecessor": "Order2"}]},
        {"and": [{"predecessor": "Order3"}, {"predecessor": "Order4"},
            {"or": [{"predecessor": "Order5"},
                {"and": [{"predecessor": "Order6"}, {"predecessor": "Order7"}]}]}]},
        {"or": [{"predecessor": "Order8"}, {"predecessor": "Order9"}]}]}},
    {"type": "OrderArchived", "releaseCondition": {"predecessor": "OrderDone"}}]}]}');
