#!/bin/sh
# What test/run, test/torture/run and bench/run share: they see to it that the
# machine has the packages that they need, and run a script in a temporary copy
# of this directory, not as root. Sourced at the top directory; the caller
# defines find_missing_packages, which calls need.
#
# The environment variable PG_MAJOR chooses another version of the server than
# Debian's own; PG_BINDIR has the programs of one that is not from a package.

PG_MAJOR=${PG_MAJOR:-15}
bindir=${PG_BINDIR:-/usr/lib/postgresql/$PG_MAJOR/bin}
no_cluster=/etc/postgresql-common/createcluster.d/seqinbox-$$.conf
as_user=
running=
work=

# the packages' programs, before others of the same name
PATH=$bindir:/usr/bin:$PATH

clean_up()
{
    trap '' HUP INT TERM
    if [ -n "$running" ]
    then
        kill "$running" 2>/dev/null && wait "$running" || :
    fi
    [ -z "$as_user" ] || rm -f "$no_cluster"
    rm -rf "$work" || { sleep 1; rm -rf "$work"; }
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# need PACKAGE COMMAND...: the package is missing if the command fails
need()
{
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

# want PACKAGE COMMAND...: as need, unless this release of Debian has no such
# package; the tests that want it are skipped then
want()
{
    package=$1
    shift
    "$@" >/dev/null 2>&1 || wanted="$wanted $package"
}

find_missing()
{
    missing=
    wanted=
    find_missing_packages
}

need_what_is_in_release()
{
    for package in $wanted
    do
        if apt-cache show "$package" >/dev/null 2>&1
        then
            missing="$missing $package"
        else
            echo "not in this release: $package"
        fi
    done
}

# what all need to build the extension and to run a server
need_server()
{
    need "postgresql-$PG_MAJOR" test -x "$bindir/postgres"
    need "postgresql-server-dev-$PG_MAJOR" \
        test -e "/usr/include/postgresql/$PG_MAJOR/server/postgres.h"
    need gcc command -v gcc
    need make command -v make
}

install_packages()
{
    apt-get -qq update
    need_what_is_in_release
    [ -n "$missing" ] || return 0
    echo "installing:$missing"
    # a server that nobody asked for shall not be started, nor another service
    mkdir -p "${no_cluster%/*}"
    echo 'create_main_cluster = false' >"$no_cluster"
    # shellcheck disable=SC2086 # several names
    DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install -y --no-install-recommends $missing >/dev/null
    for service in pgbouncer prometheus-postgres-exporter
    do
        case " $missing " in
            *" $service "*) systemctl -q disable --now "$service" 2>/dev/null || : ;;
        esac
    done
}

prepare_machine()
{
    [ "$(id -u)" != 0 ] || as_user='setpriv --reuid=postgres --regid=postgres --init-groups'

    find_missing
    if [ -n "$missing$wanted" ] && [ -n "$as_user" ]
    then
        install_packages
        find_missing
    else
        need_what_is_in_release
    fi
    if [ -n "$missing" ]
    then
        echo "missing packages:$missing" >&2
        exit 1
    fi
}

# run_in_copy SCRIPT ARGUMENT...: in $WORK/source, and with its exit status
run_in_copy()
{
    script=$1
    shift

    TMPDIR=${TMPDIR:-/tmp}
    [ -z "$as_user" ] || $as_user test -w "$TMPDIR" || TMPDIR=/tmp
    work=$(mktemp -d "$TMPDIR/seqinbox-run-XXXXXX")
    mkdir "$work/source" "$work/home" "$work/tmp"
    tar -cf - --exclude=.git --exclude=node_modules . | tar -xf - -C "$work/source"
    [ -z "$as_user" ] || chown -R postgres: "$work"

    # The caller's settings for clients and for make are not the script's.
    for variable in $(env | sed -n 's/^\(PG[A-Z]*\)=.*/\1/p') MAKEFLAGS MAKELEVEL
    do
        unset "$variable"
    done
    export KEEP_IN="$TMPDIR" WORK="$work" PG_CONFIG="$bindir/pg_config"
    export PATH HOME="$work/home" TMPDIR="$work/tmp" LC_ALL=C.UTF-8

    # A background job ignores SIGINT unless told otherwise.
    # shellcheck disable=SC2086 # several words
    set -- $as_user env --default-signal sh "$work/source/$script" "$@"
    [ -z "$as_user" ] || set -- sh test/small_disks.sh "$work/disks" "$@"
    "$@" </dev/null &
    running=$!
    status=0
    wait "$running" || status=$?
    running=
    return "$status"
}
