-- Copies `run_commit_group` and the functions that it calls, once for each Citus shard of
-- `applications`. Each copy names the tables of its Citus shard. Then replaces `run_commit_group`
-- with a wrapper. Citus runs the wrapper on the server that has the group's shard, and the wrapper
-- calls the copy for that shard. Without the copies, Citus would plan the statements over
-- distributed tables again for every group. The statements of a copy are planned once, as on a
-- single server.
DO $distribute$
DECLARE
    run_commit_group CONSTANT REGPROC := 'run_commit_group';
    citus_shard RECORD;
    its RECORD;
    functions TEXT;
BEGIN
    FOR citus_shard IN
        SELECT shardid AS id, shardminvalue AS least
        FROM pg_dist_shard WHERE logicalrelid = 'applications'::regclass
    LOOP
        SELECT string_agg(
            regexp_replace(pg_get_functiondef(oid), '\y(run_commit_group|commit_group_[a-z]+)\(',
                '\1_' || citus_shard.id || '(', 'g'), ';')
        INTO functions
        FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
          AND proname ~ '^(run_commit_group|commit_group_[a-z]+)$';
        FOR its IN
            SELECT logicalrelid::text AS name, shardid
            FROM pg_dist_shard WHERE shardminvalue = citus_shard.least OR shardminvalue IS NULL
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
                citus_shard BIGINT := get_shard_id_for_distribution_column('applications', of_shard);
                stored TEXT;
            BEGIN
                -- Sets the options of GROUP_SESSION in postgres.rs, because Citus opened this
                -- session.
                IF current_setting('plan_cache_mode') <> 'force_generic_plan' THEN
                    PERFORM set_config('plan_cache_mode', 'force_generic_plan', false),
                        set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false);
                END IF;
                -- The lock that Citus's own writers take (5 is SHARE). A move of the Citus shard to
                -- another server waits for this lock.
                PERFORM lock_shard_metadata(5, ARRAY[citus_shard]);
                PERFORM 1
                FROM pg_dist_placement p, pg_dist_local_group g
                WHERE p.shardid = citus_shard AND p.groupid = g.groupid;
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'shard %% is on another server by now', of_shard
                        USING ERRCODE = 'serialization_failure';
                END IF;
                EXECUTE 'SELECT run_commit_group_' || citus_shard || '(%s)' INTO stored USING %s;
                RETURN stored;
            END $body$
            $wrapper$,
            pg_get_function_arguments(oid),
            (SELECT string_agg('$' || n, ', ') FROM generate_series(1, pronargs) n),
            array_to_string(proargnames, ', '))
        FROM pg_proc WHERE oid = run_commit_group);
    PERFORM create_distributed_function(run_commit_group::regprocedure, 'of_shard',
        colocate_with => 'applications', force_delegation => true);
END $distribute$;
