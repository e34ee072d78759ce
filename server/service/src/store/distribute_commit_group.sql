-- Copies `run_commit_group` and the functions that it calls for each shard of `applications`, with
-- the names of that shard's tables. Then replaces `run_commit_group` by a function that Citus runs
-- on the server of the group's home, and that calls the copy for the home's shard. Statements over
-- distributed tables would be planned by Citus in every group; statements over the tables of a
-- shard are planned once, as on one server.
DO $distribute$
DECLARE
    run_commit_group CONSTANT REGPROC := 'run_commit_group';
    shard RECORD;
    its RECORD;
    functions TEXT;
BEGIN
    FOR shard IN
        SELECT shardid AS id, shardminvalue AS least
        FROM pg_dist_shard WHERE logicalrelid = 'applications'::regclass
    LOOP
        SELECT string_agg(
            regexp_replace(pg_get_functiondef(oid), '\y(run_commit_group|commit_group_[a-z]+)\(',
                '\1_' || shard.id || '(', 'g'), ';')
        INTO functions
        FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
          AND proname ~ '^(run_commit_group|commit_group_[a-z]+)$';
        FOR its IN
            SELECT logicalrelid::text AS name, shardid
            FROM pg_dist_shard WHERE shardminvalue = shard.least OR shardminvalue IS NULL
        LOOP
            functions := regexp_replace(functions,
                '\y(FROM|JOIN|INSERT INTO|UPDATE)(\s+)' || its.name || '\y',
                '\1\2' || its.name || '_' || its.shardid, 'g');
        END LOOP;
        EXECUTE functions;
    END LOOP;
    EXECUTE (
        SELECT format(
            $wrapper$
            CREATE OR REPLACE FUNCTION run_commit_group(%s) RETURNS TEXT LANGUAGE plpgsql AS $body$
            DECLARE
                shard BIGINT := get_shard_id_for_distribution_column('applications', of_home);
                stored TEXT;
            BEGIN
                -- The settings of GROUP_SESSION in store/postgres.rs: the session is one of
                -- Citus's.
                IF current_setting('plan_cache_mode') <> 'force_generic_plan' THEN
                    PERFORM set_config('plan_cache_mode', 'force_generic_plan', false),
                        set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false);
                END IF;
                -- The lock that Citus's own writers take (5 is SHARE): a move of the shard to
                -- another server waits for it.
                PERFORM lock_shard_metadata(5, ARRAY[shard]);
                PERFORM 1
                FROM pg_dist_placement p, pg_dist_local_group g
                WHERE p.shardid = shard AND p.groupid = g.groupid;
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'home %% is on another server by now', of_home
                        USING ERRCODE = 'serialization_failure';
                END IF;
                EXECUTE 'SELECT run_commit_group_' || shard || '(%s)' INTO stored USING %s;
                RETURN stored;
            END $body$
            $wrapper$,
            pg_get_function_arguments(oid),
            (SELECT string_agg('$' || n, ', ') FROM generate_series(1, pronargs) n),
            array_to_string(proargnames, ', '))
        FROM pg_proc WHERE oid = run_commit_group);
    PERFORM create_distributed_function(run_commit_group::regprocedure, 'of_home',
        colocate_with => 'applications', force_delegation => true);
END $distribute$;
