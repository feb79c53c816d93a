CALL seqinbox_housekeeping();
