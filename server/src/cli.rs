//! The command line: commands and their arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::decision::StaffList;
use domain::{Email, Keyword, Money, Number, Prefix, Reference, Timestamp, Transid};

/// Bulk SMS: portal, API, worker and staff tools in one program.
#[derive(Debug, Parser)]
#[command(name = "heliograph", version = crate::VERSION, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub flags: Flags,
    /// Print data as one line of JSON.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// Settings that every command reads.
#[derive(Debug, Args)]
pub struct Flags {
    /// Settings file [default: heliograph.toml, or else
    /// /etc/heliograph/heliograph.toml, if it exists].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Database URL, such as sqlite:data/heliograph.db.
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    /// Folder that contains secret.key, uploads in progress and the demo's sign-ins.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Migrate the database, then serve the portal and the API and send queued messages.
    Serve(Serve),
    /// Only migrate the database.
    Migrate,
    /// Manage accounts.
    #[command(subcommand)]
    Account(Account),
    /// Manage applications.
    #[command(subcommand)]
    Application(Application),
    /// Review sender names.
    #[command(subcommand)]
    Sender(Sender),
    /// Inspect the endpoints that get events.
    #[command(subcommand)]
    Webhook(Webhook),
    /// Manage the numbers that handsets send messages to.
    #[command(subcommand)]
    Number(InboundNumber),
    /// Manage deposits.
    #[command(subcommand)]
    Deposit(Deposit),
    /// Manage prices.
    #[command(subcommand)]
    Price(Price),
    /// Print what customers paid and what carriers charge, by day, application and prefix.
    Margin(Margin),
    /// Manage carriers.
    #[command(subcommand)]
    Carrier(Carrier),
    /// Manage notes about incidents. Customers read them in the portal.
    #[command(subcommand)]
    Incident(Incident),
    /// Manage the staff's lists: reasons to choose from, and reserved words.
    #[command(subcommand)]
    StaffList(StaffLists),
    /// Manage mails.
    #[command(subcommand)]
    Mail(Mail),
    /// Read the audit log.
    #[command(subcommand)]
    Audit(Audit),
    /// Find accounts, applications, messages, batches and deposits by one text: a transid, a
    /// batchid, or any part of an email, a reference, an application's name, a sender name or a
    /// deposit (bank ID, payer or purpose). A number or a request ID finds messages of the last 7
    /// days. To find older messages, too, write the account's email or the application's reference
    /// before it ("123456 57000001").
    Search { text: String },
    /// Inspect messages, and decide about those whose outcome is unknown.
    #[command(subcommand, visible_alias = "messages")]
    Message(Message),
    /// Try out the routes.
    #[command(subcommand)]
    Route(RouteCommand),
    /// Check settings, files, disk, clock, database, carriers, mail and base URL, and print what to
    /// do about each fault. Changes nothing.
    Doctor,
    /// Check that the rows of the ledger and the queue agree with every invariant.
    Check,
    /// Copy the database to a new file while it is in use.
    Backup {
        file: PathBuf,
        /// Encrypt the backup for the owner of this key, in the format of age. Can be repeated.
        #[arg(long = "recipient", value_name = "AGE1...")]
        recipients: Vec<String>,
        /// A file with one such key per line.
        #[arg(long, value_name = "FILE")]
        recipients_file: Option<PathBuf>,
    },
    /// Restore a backup where there is no database yet. The server then holds all messages until
    /// you run `message reconcile`.
    Restore {
        file: PathBuf,
        /// The file of a key that opens an encrypted backup, as `age-keygen` writes it.
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
    },
    /// Move an installation from SQLite to an empty PostgreSQL database. Stop the server first.
    Copy {
        #[arg(long, value_name = "URL")]
        from: String,
        #[arg(long, value_name = "URL", required_unless_present = "to_file")]
        to: Option<String>,
        /// A file that contains the URL. Other users of the machine can read command-line
        /// arguments.
        #[arg(long, value_name = "FILE", conflicts_with = "to")]
        to_file: Option<PathBuf>,
    },
    /// Distribute a PostgreSQL database over the workers of its Citus cluster. Stop all servers
    /// first.
    Distribute {
        /// Number of shards to divide accounts into. Each shard is on one worker.
        #[arg(long, value_name = "N")]
        shards: i64,
    },
    /// Print the effective settings, with secrets masked.
    Config,
    /// Print the OpenAPI document of the SMS API.
    Openapi,
    /// Write the manual pages of all commands to a folder.
    Manual { folder: PathBuf },
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Serve demo data, which the first start creates.
    #[arg(long)]
    pub demo: bool,
    /// Do only this part of the work. Needs PostgreSQL.
    #[arg(long)]
    pub role: Option<Role>,
    /// Address of the portal and the API.
    #[arg(long, value_name = "IP:PORT")]
    addr: Option<String>,
    /// Address of health and metrics.
    #[arg(long, value_name = "IP:PORT")]
    ops_addr: Option<String>,
    /// URL that customers use.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Portal and API, without connections to carriers.
    Web,
    /// Connections to carriers and periodic jobs, without portal and API.
    Worker,
}

#[derive(Debug, Subcommand)]
pub enum Account {
    /// Add an account.
    Add {
        #[arg(value_parser = Email::parse)]
        email: Email,
        /// Make it a staff account.
        #[arg(long)]
        staff: bool,
        /// Read the password from the first line of standard input.
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Print a link with which the account's owner can set a new password.
    Reset { email: String },
    /// List all accounts.
    List,
    /// Show one account.
    Show { email: String },
    /// Disable an account. Nobody can sign in to it, and its keys can't send.
    Disable {
        email: String,
        /// Shown only to staff.
        #[arg(long)]
        reason: String,
    },
    /// Enable a disabled account.
    Enable { email: String },
    /// Sign an account out on every device.
    SignOut { email: String },
    /// Make an account a staff account.
    Promote { email: String },
    /// Make a staff account a customer account.
    Demote { email: String },
    /// Remove a second factor that the account's owner has lost.
    ResetFactor { email: String },
    /// Write everything that an account's rows contain about a phone number to a new JSON file. The
    /// audit log records this.
    ExportNumber {
        email: String,
        #[arg(value_parser = Number::parse)]
        number: Number,
        #[arg(long)]
        file: PathBuf,
    },
    /// Erase a phone number and the texts to and from it. The messages' other data and the ledger
    /// stay. This can't be undone. The audit log records it.
    EraseNumber {
        #[arg(value_parser = Number::parse)]
        number: Number,
        /// Only in the rows of this account.
        #[arg(long, value_name = "EMAIL", required_unless_present = "all")]
        account: Option<String>,
        /// In the rows of all accounts.
        #[arg(long, conflicts_with = "account")]
        all: bool,
    },
    /// Write a note on an account. Its owner doesn't see the note. Notes can't be changed.
    Note {
        email: String,
        #[arg(long)]
        text: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Application {
    /// List all applications.
    List,
    /// Show one application.
    Show {
        #[arg(value_parser = Reference::parse)]
        reference: Reference,
    },
    /// Make a pending application active.
    Approve {
        #[arg(value_parser = Reference::parse)]
        reference: Reference,
    },
    /// Suspend a pending or active application.
    Suspend {
        #[arg(value_parser = Reference::parse)]
        reference: Reference,
        /// Shown to the customer.
        #[arg(long)]
        reason: String,
    },
    /// Restore the status that a suspended application had before.
    Reinstate {
        #[arg(value_parser = Reference::parse)]
        reference: Reference,
    },
}

#[derive(Debug, Subcommand)]
pub enum Sender {
    /// List the sender names that wait for a decision.
    List,
    /// Accept a sender name.
    Accept { id: i64 },
    /// Reject a sender name.
    Reject {
        id: i64,
        /// Shown to the customer.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// List the endpoints of an application.
    List {
        #[arg(value_parser = Reference::parse)]
        reference: Reference,
    },
}

#[derive(Debug, Subcommand)]
pub enum InboundNumber {
    /// List the numbers that handsets send messages to, with their applications.
    List,
    /// Assign a number to an application, which then gets the messages to it.
    Add {
        #[arg(value_parser = Number::parse_typed)]
        number: Number,
        #[arg(long, value_parser = Reference::parse)]
        application: Reference,
        /// Only messages whose first word is this keyword. Without a keyword, all messages that
        /// start with no other keyword of the number.
        #[arg(long, value_parser = Keyword::parse)]
        keyword: Option<Keyword>,
    },
    /// End the assignment of a number to its application.
    Remove {
        #[arg(value_parser = Number::parse_typed)]
        number: Number,
        #[arg(long, value_parser = Keyword::parse)]
        keyword: Option<Keyword>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Deposit {
    /// Credit money from the bank. A bank ID is credited only once.
    Add {
        /// The reference that the payer wrote. Money with an unknown reference waits until it is
        /// assigned.
        reference: String,
        #[arg(value_parser = amount)]
        amount: Money,
        /// The bank's ID of the payment.
        #[arg(long)]
        bank_id: String,
    },
    /// Credit a bank statement: a CSV file, for example with the header bank_id,reference,amount.
    /// If any line is bad, nothing is credited.
    Import { file: PathBuf },
    /// List deposits that belong to no known application.
    Unmatched,
    /// Credit an unmatched deposit to an application.
    Assign {
        bank_id: String,
        #[arg(value_parser = Reference::parse)]
        reference: Reference,
    },
}

#[derive(Debug, Subcommand)]
pub enum Price {
    /// List the current prices and the future ones.
    List,
    /// Set the base prices per page: for local numbers, and for all other numbers whose prefixes
    /// have no price. From then on, the prices in the settings have no effect.
    Set {
        #[arg(value_parser = Money::parse)]
        local: Money,
        #[arg(value_parser = Money::parse)]
        international: Money,
        #[command(flatten)]
        from: Beginning,
    },
    /// Set the price per page of international numbers that begin with these digits.
    SetPrefix {
        #[arg(value_parser = Prefix::parse)]
        prefix: Prefix,
        #[arg(value_parser = Money::parse)]
        price: Money,
        #[command(flatten)]
        from: Beginning,
    },
    /// Remove the price of a prefix. Its numbers then have the price of a shorter prefix or the
    /// base price.
    RemovePrefix {
        #[arg(value_parser = Prefix::parse)]
        prefix: Prefix,
        #[command(flatten)]
        from: Beginning,
    },
    /// Print the current price of a page to a number, and the reason for it.
    Of {
        #[arg(value_parser = Number::parse)]
        number: Number,
    },
}

/// The days of a report, at most 92. The report includes the first and the last day. A day appears
/// after its end.
#[derive(Clone, Copy, Debug, Args)]
pub struct Margin {
    /// The first day, like 2026-11-01.
    #[arg(long, value_name = "DAY", value_parser = time)]
    pub from: Timestamp,
    /// The last day.
    #[arg(long, value_name = "DAY", value_parser = time)]
    pub to: Timestamp,
}

/// The time from which a price is in force.
#[derive(Clone, Copy, Debug, Args)]
pub struct Beginning {
    /// A time in RFC 3339, or a date, which means midnight UTC [default: now].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<Timestamp>,
}

#[derive(Debug, Subcommand)]
pub enum Carrier {
    /// List the carriers, with their connections and the messages that wait for them.
    List,
    /// Show a carrier's state with the reason, its figures and its connections.
    Show { name: String },
    /// Submit no more messages to a carrier. The carrier finishes the messages that it has. Waiting
    /// messages take another route if there is one.
    Drain {
        name: String,
        /// Drain it even if no other carrier takes messages. The messages then wait.
        #[arg(long)]
        yes: bool,
    },
    /// End a drain.
    Resume { name: String },
    /// Read carriers and routes from the settings file again, in all running processes. Nothing
    /// changes if the file has an error.
    Reload,
    /// Close the connections to a carrier and open them again, in all running processes.
    Rebind { name: String },
    /// Send a message over a carrier's connection, and follow it to its receipt. No customer pays
    /// for it, but the carrier may charge for it.
    Test {
        name: String,
        #[arg(value_parser = Number::parse)]
        number: Number,
        #[arg(value_parser = test_text)]
        text: String,
        /// The sender name [default: the setting default_sender].
        #[arg(long)]
        sender: Option<String>,
    },
    /// Print the PDUs on the connections to a carrier, of all running processes. Numbers and texts
    /// are masked.
    Trace {
        name: String,
        /// How long to trace, at most 300.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
        seconds: u64,
        /// Show numbers and texts. The audit log records this.
        #[arg(long)]
        numbers: bool,
        /// Also write the PDUs to this file, which Wireshark can read.
        #[arg(long, value_name = "FILE")]
        pcap: Option<PathBuf>,
    },
    /// List a carrier's latest receipts, and whether each one matched a message. Also lists the
    /// carrier's answers to submits with their outcomes, except answers that accept a message with
    /// an ID. Suggests a format of message IDs if receipts match no message.
    Receipts {
        name: String,
        /// Only the receipts that match no message, with the reasons.
        #[arg(long, conflicts_with_all = ["id", "number"])]
        unmatched: bool,
        /// Only receipts and answers with this message ID, as the carrier writes it.
        #[arg(long, conflicts_with = "number")]
        id: Option<String>,
        /// Only receipts and answers for messages to this number, as the carrier gets it.
        #[arg(long)]
        number: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Incident {
    /// List the open notes.
    List,
    /// Open a note that customers read in the portal from now on.
    Open {
        #[arg(long)]
        text: String,
        /// The carrier that the note is about. Customers don't see it.
        #[arg(long, value_name = "NAME")]
        carrier: Option<String>,
    },
    /// End a note.
    End { id: i64 },
}

#[derive(Debug, Subcommand)]
pub enum StaffLists {
    /// Print a list.
    Show {
        #[arg(value_parser = staff_list)]
        list: StaffList,
    },
    /// Replace a list.
    Set {
        #[arg(value_parser = staff_list)]
        list: StaffList,
        /// A text file with one entry per line.
        #[arg(long)]
        file: PathBuf,
    },
}

/// Parses the name of a list.
fn staff_list(text: &str) -> Result<StaffList, String> {
    StaffList::parse(text).ok_or_else(|| {
        let names = StaffList::ALL.map(StaffList::as_str).join(", ");
        format!("there is no such list; the lists are {names}")
    })
}

#[derive(Debug, Subcommand)]
pub enum Mail {
    /// List the mails that are waiting, failed, kept or sent, newest first. They are deleted after
    /// mail_days.
    List,
    /// Send a waiting, failed or kept mail again.
    Retry { id: i64 },
}

#[derive(Debug, Subcommand)]
pub enum RouteCommand {
    /// Show which route a message would take now, why, and what it costs. Nothing is sent.
    Try {
        #[arg(value_parser = Number::parse)]
        number: Number,
        /// The sender name [default: the setting default_sender].
        #[arg(long)]
        sender: Option<String>,
        /// The reference of the application.
        #[arg(long, value_parser = Reference::parse)]
        application: Option<Reference>,
        /// The text, for carriers that don't accept long messages [default: a short text].
        #[arg(long)]
        text: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Message {
    /// List the newest 500 messages whose outcome is unknown: the carrier may have them, but didn't
    /// answer.
    Unknown {
        /// Only those that this carrier may have.
        #[arg(long, value_name = "NAME")]
        carrier: Option<String>,
    },
    /// Show a message with its timeline, its charge and the carriers' responses.
    Show {
        #[arg(value_parser = transid)]
        transid: Transid,
        /// Show its text too. The audit log records this.
        #[arg(long)]
        text: bool,
    },
    /// Make messages with an unknown outcome final, with the outcome that the carrier reported. The
    /// audit log records this.
    Settle {
        #[arg(value_parser = transid, required = true)]
        transids: Vec<Transid>,
        /// The outcome that the carrier reported.
        #[arg(long = "as")]
        settlement: SettleAs,
    },
    /// Submit messages with an unknown outcome once more. The carrier may deliver them twice. The
    /// audit log records this.
    Requeue {
        #[arg(value_parser = transid, required = true)]
        transids: Vec<Transid>,
    },
    /// Sort the messages that are held since a backup was restored. Without options, show them.
    Reconcile(Reconcile),
    /// Hold all messages. Run this before the first start on a copy of a whole disk or server: the
    /// server can't tell the copy from the original.
    Hold,
}

#[derive(Debug, Args)]
pub struct Reconcile {
    /// Take the messages with receipts since the restore out of the queue.
    #[arg(long)]
    pub receipts: bool,
    /// Take the messages in a carrier's list out of the queue. The list is CSV with the columns
    /// number or transid, and time and id if the carrier has them.
    #[arg(long, value_name = "FILE", requires = "carrier")]
    pub export: Option<PathBuf>,
    /// The carrier that the list is from.
    #[arg(long, value_name = "NAME", requires = "export")]
    pub carrier: Option<String>,
    /// Cancel the messages that were due longer ago than this, such as 90m, 6h or 2d, and release
    /// their prices.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub discard_older_than: Option<i64>,
    /// The decision about all other messages. This ends the hold.
    #[arg(long)]
    pub rest: Option<RestAs>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RestAs {
    /// Submit them. Messages that the original sent after the backup are sent twice.
    Send,
    /// Never submit them. Their outcome is unknown, and the charges stay.
    Unknown,
}

/// Parses an age, and returns it in milliseconds.
fn age(text: &str) -> Result<i64, String> {
    let units = [("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let parsed = units.into_iter().find_map(|(unit, ms)| {
        let count: u32 = text.strip_suffix(unit)?.parse().ok()?;
        i64::from(count).checked_mul(ms)
    });
    parsed.ok_or_else(|| "an age is written like 90m, 6h or 2d".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SettleAs {
    Delivered,
    /// The carrier had the message and didn't deliver it. The charge stays.
    Failed,
    /// The carrier never had the message. The charge is released.
    NeverSent,
}

/// The maximum number of pages in a test message.
const TEST_PAGES_MAX: usize = 10;

/// Parses the text of a test message.
fn test_text(text: &str) -> Result<String, String> {
    let parsed = domain::MessageText::parse(text.to_owned(), TEST_PAGES_MAX);
    parsed.map(|text| text.as_str().to_owned()).map_err(|error| error.to_string())
}

fn transid(text: &str) -> Result<Transid, String> {
    Transid::parse(text).ok_or_else(|| "a transid is m_ and 13 characters".to_owned())
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// List changes by staff, customers and the command line, newest first.
    List {
        /// Only changes to this subject: the email of an account, a carrier, or a reference, which
        /// also finds changes to the application's messages and batches.
        #[arg(long)]
        subject: Option<String>,
        /// Only changes at this time or later, such as 2026-11-23T10:00:00Z or 2026-11-23.
        #[arg(long, value_name = "TIME", value_parser = time)]
        from: Option<Timestamp>,
    },
}

fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = || "a time is written like 2026-12-01 or 2026-12-01T08:30:00Z".to_owned();
    Timestamp::parse_typed(text).ok_or_else(wrong)
}

/// Parses an amount that can be deposited.
pub fn amount(text: &str) -> Result<Money, String> {
    match Money::parse(text) {
        Ok(money) if money > Money::ZERO => Ok(money),
        Ok(_) => Err("an amount must be greater than 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Cli {
    /// Returns the settings that were given as flags.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut flags =
            vec![("database_url", &self.flags.database_url), ("data_dir", &self.flags.data_dir)];
        if let Command::Serve(serve) = &self.command {
            flags.extend([
                ("addr", &serve.addr),
                ("ops_addr", &serve.ops_addr),
                ("base_url", &serve.base_url),
            ]);
        }
        flags.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }
}
