//! The names of the values of `command_status` (SMPP 3.4, 5.1.3).

/// A value of `command_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandStatus {
    /// The number on the wire.
    pub number: u32,
    /// The name in the specification.
    pub name: &'static str,
    /// The meaning, in words.
    pub meaning: &'static str,
}

const fn known(number: u32, name: &'static str, meaning: &'static str) -> CommandStatus {
    CommandStatus { number, name, meaning }
}

/// Every error that SMPP 3.4 names, by number.
pub const KNOWN: [CommandStatus; 47] = [
    known(0x01, "ESME_RINVMSGLEN", "the message length is invalid"),
    known(0x02, "ESME_RINVCMDLEN", "the command length is invalid"),
    known(0x03, "ESME_RINVCMDID", "the command is unknown or not allowed"),
    known(0x04, "ESME_RINVBNDSTS", "the command isn't allowed for this kind of bind"),
    known(0x05, "ESME_RALYBND", "already bound"),
    known(0x06, "ESME_RINVPRTFLG", "the priority is invalid"),
    known(0x07, "ESME_RINVREGDLVFLG", "the request for a receipt is invalid"),
    known(0x08, "ESME_RSYSERR", "system error"),
    known(0x0A, "ESME_RINVSRCADR", "the sender is invalid"),
    known(0x0B, "ESME_RINVDSTADR", "the number is invalid"),
    known(0x0C, "ESME_RINVMSGID", "the message ID is invalid"),
    known(0x0D, "ESME_RBINDFAIL", "the bind failed"),
    known(0x0E, "ESME_RINVPASWD", "wrong password"),
    known(0x0F, "ESME_RINVSYSID", "wrong system_id"),
    known(0x11, "ESME_RCANCELFAIL", "the cancellation failed"),
    known(0x13, "ESME_RREPLACEFAIL", "the replacement failed"),
    known(0x14, "ESME_RMSGQFUL", "the message queue is full"),
    known(0x15, "ESME_RINVSERTYP", "the service_type is invalid"),
    known(0x33, "ESME_RINVNUMDESTS", "the number of destinations is invalid"),
    known(0x34, "ESME_RINVDLNAME", "the name of the distribution list is invalid"),
    known(0x40, "ESME_RINVDESTFLAG", "the destination flag is invalid"),
    known(0x42, "ESME_RINVSUBREP", "submit with replace isn't possible"),
    known(0x43, "ESME_RINVESMCLASS", "the esm_class is invalid"),
    known(0x44, "ESME_RCNTSUBDL", "can't submit to a distribution list"),
    known(0x45, "ESME_RSUBMITFAIL", "the submit failed"),
    known(0x48, "ESME_RINVSRCTON", "the sender's TON is invalid"),
    known(0x49, "ESME_RINVSRCNPI", "the sender's NPI is invalid"),
    known(0x50, "ESME_RINVDSTTON", "the number's TON is invalid"),
    known(0x51, "ESME_RINVDSTNPI", "the number's NPI is invalid"),
    known(0x53, "ESME_RINVSYSTYP", "the system_type is invalid"),
    known(0x54, "ESME_RINVREPFLAG", "the replace flag is invalid"),
    known(0x55, "ESME_RINVNUMMSGS", "the number of messages is invalid"),
    known(0x58, "ESME_RTHROTTLED", "we exceeded the allowed rate"),
    known(0x61, "ESME_RINVSCHED", "the scheduled time is invalid"),
    known(0x62, "ESME_RINVEXPIRY", "the validity period is invalid"),
    known(0x63, "ESME_RINVDFTMSGID", "the predefined message is invalid"),
    known(0x64, "ESME_RX_T_APPN", "temporary error of the application"),
    known(0x65, "ESME_RX_P_APPN", "permanent error of the application"),
    known(0x66, "ESME_RX_R_APPN", "the application refused the message"),
    known(0x67, "ESME_RQUERYFAIL", "the query failed"),
    known(0xC0, "ESME_RINVOPTPARSTREAM", "the optional parameters are invalid"),
    known(0xC1, "ESME_ROPTPARNOTALLWD", "an optional parameter isn't allowed"),
    known(0xC2, "ESME_RINVPARLEN", "a parameter has an invalid length"),
    known(0xC3, "ESME_RMISSINGOPTPARAM", "an optional parameter is missing"),
    known(0xC4, "ESME_RINVOPTPARAMVAL", "an optional parameter has an invalid value"),
    known(0xFE, "ESME_RDELIVERYFAILURE", "the delivery failed"),
    known(0xFF, "ESME_RUNKNOWNERR", "unknown error"),
];

/// Returns the entry of a status, if SMPP 3.4 names it.
pub fn find(status: u32) -> Option<&'static CommandStatus> {
    KNOWN.iter().find(|known| known.number == status)
}

/// Describes a status with its meaning, name and number: `wrong password, ESME_RINVPASWD
/// 0x0000000e`. A status that SMPP 3.4 doesn't name has only a number.
pub(crate) fn describe(status: u32) -> String {
    match find(status) {
        Some(known) => format!("{}, {} 0x{status:08x}", known.meaning, known.name),
        None if (0x400..=0x4FF).contains(&status) => {
            format!("the carrier's own error 0x{status:08x}")
        }
        None => format!("0x{status:08x}"),
    }
}
