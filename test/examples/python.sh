#!/bin/sh
# Runs examples/python against the server and the empty database that PGHOST,
# PGPORT, PGUSER and PGDATABASE name. An argument is taken as the seed. PYTHON
# chooses another Python than the one that Debian's packages belong to.
set -eu

python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import psycopg'
then
	echo 'there is no psycopg 3'
	exit 77
fi

examples=$(cd "$(dirname "$0")/../../examples" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT TERM

# The deliveries come in an npm package.
cd "$copy"
cp "$examples/node/package.json" "$examples/node/package-lock.json" \
	"$examples/node/.npmrc" .
npm_config_cache="$copy/.npm-cache"
export npm_config_cache
npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier

# -B: no compiled files beside the sources
"$python" -B "$examples/python/deliver.py" \
	node_modules/@octokit/webhooks-examples "$@"
