//! Advice for each refusal of the API.

use domain::Reason;

/// Returns what the caller can do about a refusal.
pub const fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::MissingParameter => {
            "Give number and message; an upload has bulksms, or numbers and message. Check that \
             the Content-Type fits the body."
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
            "Compare the parameter with the API reference; the address must be readable, too."
        }
        Reason::AmbiguousBulk => "Choose one kind of upload, and leave out the other's fields.",
        Reason::InvalidFile => {
            "Correct the lines that errors names. If error_count says that there are more, upload \
             the file with dryrun=1, which sends nothing, until none is left."
        }
        Reason::InvalidEncoding => {
            "Encode text as UTF-8, and each byte of it as % and two digits in an address or form."
        }
        Reason::SenderPending => {
            "Wait for the decision about the name, or withdraw it on the application's page."
        }
        Reason::SenderRejected => {
            "Read the reason on the application's page, and request another name or withdraw this one there."
        }
        Reason::InternationalDisabled => "Send to local numbers, or ask support.",
        Reason::AddressNotAllowed => "Call from one of the addresses that the key is for.",
        Reason::NotFound => "Compare the path and the id in it with the API reference.",
        Reason::MethodNotAllowed => "Use one of the methods that the header Allow names.",
        Reason::Timeout => "Send it again, with a shorter body or by a faster connection.",
        Reason::TooLarge => "Divide the file; a text belongs into the body, not into the address.",
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
        Reason::RecipientFlooded => "Wait before the next message to this number.",
        Reason::SpendCapReached => "Raise the limit in the application's settings, or wait.",
        Reason::Internal => {
            "Send it again, with an Idempotency-Key. If it stays, tell support the X-Request-Id."
        }
        Reason::Unavailable => "Send it again after the seconds that Retry-After says.",
        Reason::InsufficientFunds => {
            "Deposit with the application's reference: its page says how. Then send again."
        }
        Reason::ApiPending => {
            "Request activation on the application's page. The test key works meanwhile."
        }
        Reason::ApiSuspended => "Ask support why: the application's page has their reason.",
        Reason::ApiInvalid => {
            "Check that the whole key was copied. A key is shown once: if it is lost or was \
             replaced, replace it on the application's page Keys and use the new one."
        }
        Reason::ApiNotApplicable => "Use the key of an application of the category SMS.",
    }
}
