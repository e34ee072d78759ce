//! What only a database that is a file has: one process that serves it, copies of it, and uploads
//! in files beside it.

mod backups;
mod crash;
mod one_process;
