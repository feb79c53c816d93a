#!/bin/sh
# What test/suites.sh and test/long.sh share: they stop servers that
# a test left behind. To be sourced.

# stop_servers DIRECTORY: those whose data is in it, or on a small disk
stop_servers()
{
    [ -d "$1" ] || return 0
    find -L "$1" -name postmaster.pid 2>/dev/null | while read -r pid_file
    do
        pg_ctl stop -s -m immediate -D "${pid_file%/*}" >/dev/null 2>&1 || :
    done
}
