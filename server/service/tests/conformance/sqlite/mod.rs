//! Tests only for SQLite: a single process that serves the database, backups, and uploads in files.

mod backups;
mod crash;
mod one_process;
