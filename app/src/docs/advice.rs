//! Advice for each refusal of the API.

use domain::Reason;

/// Returns what the caller can do about a refusal.
pub const fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::MissingParameter => {
            "Give number and message. An upload needs bulksms, or numbers and message. Check that \
             the Content-Type matches the body."
        }
        Reason::DuplicateParameter => {
            "Give each parameter once: in the address or in the body, not in both."
        }
        Reason::InvalidNumber => {
            "Leave out spaces and hyphens. Write a leading + as %2B in an address."
        }
        Reason::InvalidMessage => "Check that the text isn't empty before you send it.",
        Reason::MessageTooLong => {
            "Shorten the text, or send several messages. The counter for texts shows its pages."
        }
        Reason::InvalidRequestid => "Shorten it, or leave it out: it is only for look-ups.",
        Reason::InvalidParameter => {
            "Compare the parameter with the API reference. Check that the address is encoded \
             correctly."
        }
        Reason::AmbiguousBulk => "Choose one kind of upload, and leave out the other's fields.",
        Reason::InvalidFile => {
            "Correct the lines that errors lists. If error_count is larger, upload the file with \
             dryrun=1, which sends nothing, until no errors are left."
        }
        Reason::InvalidEncoding => {
            "Encode text as UTF-8. In an address or form, write each byte as % and two hex digits."
        }
        Reason::InvalidUrl => {
            "Give an https address on the public Internet, without user name and password."
        }
        Reason::TooManyWebhooks => "Remove an endpoint that you no longer need.",
        Reason::NotCancellable => {
            "Look the message or the batch up: its status says what has become of it."
        }
        Reason::BatchEnded => "Look the batch up: its counts say what has become of its rows.",
        Reason::VerifyEnded => "Start a new verification with number instead of verifyid.",
        Reason::SenderPending => {
            "Wait for the decision about the name, or withdraw it on the application's page."
        }
        Reason::SenderRejected => {
            "Read the reason on the application's page, and request another name or withdraw this one there."
        }
        Reason::OptedOut => {
            "Don't send to this number. It is on the application's list of opt-outs, until the \
             recipient writes START or you remove it there."
        }
        Reason::TestKeyRequired => {
            "Use the test key, which the application's page Keys can replace. Calls below \
             /sms/test change nothing for live messages."
        }
        Reason::InternationalDisabled
        | Reason::DoubtfulNumber
        | Reason::TrafficPumping
        | Reason::AddressNotAllowed
        | Reason::LeakedKey
        | Reason::LimitsLocked
        | Reason::RecipientFlooded
        | Reason::SpendCapReached => advice_about_limits(reason),
        Reason::NotFound => "Compare the path and the id in it with the API reference.",
        Reason::MethodNotAllowed => "Use one of the methods in the header Allow.",
        Reason::Timeout => "Send it again, with a shorter body or by a faster connection.",
        Reason::TooLarge => "Split the file. Put a text into the body, not into the address.",
        Reason::UnsupportedMediaType => {
            "Send the body as JSON, as form fields or as multipart, with its Content-Type."
        }
        Reason::IdempotencyInProgress => {
            "Wait as long as Retry-After says, and send the same request again."
        }
        Reason::IdempotencyMismatch => {
            "Use a new Idempotency-Key for each new request, and the same one only to repeat it."
        }
        Reason::RateLimited => "Wait as long as Retry-After says, and spread your calls.",
        Reason::Internal => {
            "Send it again, with an Idempotency-Key. If it fails again, tell support the \
             X-Request-Id."
        }
        Reason::Unavailable => "Send it again after the number of seconds in Retry-After.",
        Reason::InsufficientFunds => {
            "Deposit with the application's reference, as its page says. Then send again."
        }
        Reason::ApiPending => {
            "Request activation on the application's page. The test key works meanwhile."
        }
        Reason::ApiSuspended => "Contact support. The application's page has the reason.",
        Reason::ApiInvalid => {
            "Check that you copied the whole key. If it is lost or was replaced, replace it on the \
             application's page Keys and use the new one. A key is shown only once."
        }
        Reason::ApiNotApplicable => "Use the key of an application of the category SMS.",
    }
}

/// Returns what the caller can do if an application's limits refuse a request.
const fn advice_about_limits(reason: Reason) -> &'static str {
    match reason {
        Reason::InternationalDisabled => {
            "Check the number. If the destination is right, allow it in the application's settings."
        }
        Reason::DoubtfulNumber => {
            "Write a local number with 8 digits, and an international one with its country code."
        }
        Reason::TrafficPumping => {
            "Find out who asks for these messages. Raise the number in the application's settings \
             if they are wanted."
        }
        Reason::AddressNotAllowed => {
            "Send from one of the addresses in the application's settings, or add this one there."
        }
        Reason::LeakedKey => {
            "Replace the key, and use it only on a server, over HTTPS and in the header \
             Authorization."
        }
        Reason::LimitsLocked => {
            "Change the limits in the application's settings, or allow changes by API there."
        }
        Reason::RecipientFlooded => {
            "Check why your program sends so much to this recipient. Wait as long as Retry-After \
             says."
        }
        _ => {
            "Check what your program sends. Raise the limit in the application's settings, or wait \
             as long as Retry-After says."
        }
    }
}
