#!/usr/bin/env bash
# The PostgreSQL image runs this once, when it creates a new database. It creates the nodes' role,
# which owns their database. The role isn't a superuser, because a superuser can change the
# append-only tables. The superuser loses its password, so it can sign in only inside the container.
# On Citus (compose.citus.yaml) the image itself makes the nodes' role a superuser, and the servers
# sign in to each other with it.
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
