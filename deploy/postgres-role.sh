#!/usr/bin/env bash
# The PostgreSQL image runs this once, before it serves a new database: the nodes get a role that owns
# their database and is no superuser, whom the append-only tables would not hold back. The superuser
# has no password from then on, and signs in inside the container alone. On Citus (compose.citus.yaml)
# the servers sign in to each other as the nodes' role, which the image has made a superuser.
set -euo pipefail

if [ "${POSTGRES_USER:-postgres}" != heliograph ]; then
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="${POSTGRES_USER:-postgres}" \
        --dbname=postgres --set=password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE heliograph LOGIN PASSWORD :'password';
GRANT pg_read_all_stats TO heliograph;
CREATE DATABASE heliograph OWNER heliograph;
ALTER ROLE CURRENT_USER PASSWORD NULL;
SQL
fi
