//! Refusals of the SMS API, each with its response code, HTTP status and sentence.

use crate::words::words;

words! {
    /// Why the API refused a request. Clients may match on the stable string that `as_str` returns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason {
        MissingParameter = "missing_parameter",
        DuplicateParameter = "duplicate_parameter",
        InvalidNumber = "invalid_number",
        InvalidMessage = "invalid_message",
        MessageTooLong = "message_too_long",
        InvalidRequestid = "invalid_requestid",
        InvalidParameter = "invalid_parameter",
        AmbiguousBulk = "ambiguous_bulk",
        InvalidFile = "invalid_file",
        InvalidEncoding = "invalid_encoding",
        InvalidUrl = "invalid_url",
        SenderPending = "sender_pending",
        SenderRejected = "sender_rejected",
        OptedOut = "opted_out",
        TestKeyRequired = "test_key_required",
        InternationalDisabled = "international_disabled",
        DoubtfulNumber = "doubtful_number",
        TrafficPumping = "traffic_pumping",
        AddressNotAllowed = "address_not_allowed",
        LeakedKey = "leaked_key",
        LimitsLocked = "limits_locked",
        NotFound = "not_found",
        MethodNotAllowed = "method_not_allowed",
        Timeout = "timeout",
        TooLarge = "too_large",
        UnsupportedMediaType = "unsupported_media_type",
        IdempotencyInProgress = "idempotency_in_progress",
        IdempotencyMismatch = "idempotency_mismatch",
        TooManyWebhooks = "too_many_webhooks",
        NotCancellable = "not_cancellable",
        BatchEnded = "batch_ended",
        VerifyEnded = "verify_ended",
        RateLimited = "rate_limited",
        RecipientFlooded = "recipient_flooded",
        SpendCapReached = "spend_cap_reached",
        Internal = "internal",
        Unavailable = "unavailable",
        InsufficientFunds = "insufficient_funds",
        ApiPending = "api_pending",
        ApiSuspended = "api_suspended",
        ApiInvalid = "api_invalid",
        ApiNotApplicable = "api_not_applicable",
    }
}

/// The response code of a successful request.
pub const CODE_SUCCESS: u16 = 200;

impl Reason {
    /// Returns the response code from the specification.
    pub const fn code(self) -> u16 {
        match self {
            Self::InsufficientFunds => 501,
            Self::ApiPending => 502,
            Self::ApiSuspended => 503,
            Self::ApiInvalid => 504,
            Self::ApiNotApplicable => 505,
            _ => 500,
        }
    }

    /// Returns the HTTP status. Refusals by a business rule never use 502, 503 or 504, because
    /// proxies and clients retry those.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::MissingParameter
            | Self::DuplicateParameter
            | Self::InvalidNumber
            | Self::InvalidMessage
            | Self::MessageTooLong
            | Self::InvalidRequestid
            | Self::InvalidParameter
            | Self::AmbiguousBulk
            | Self::InvalidFile
            | Self::InvalidEncoding
            | Self::InvalidUrl => 400,
            Self::ApiInvalid => 401,
            Self::InsufficientFunds => 402,
            Self::SenderPending
            | Self::SenderRejected
            | Self::OptedOut
            | Self::TestKeyRequired
            | Self::InternationalDisabled
            | Self::DoubtfulNumber
            | Self::TrafficPumping
            | Self::AddressNotAllowed
            | Self::LeakedKey
            | Self::LimitsLocked
            | Self::ApiPending
            | Self::ApiSuspended
            | Self::ApiNotApplicable => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Timeout => 408,
            Self::IdempotencyInProgress
            | Self::TooManyWebhooks
            | Self::NotCancellable
            | Self::BatchEnded
            | Self::VerifyEnded => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::IdempotencyMismatch => 422,
            Self::RateLimited | Self::RecipientFlooded | Self::SpendCapReached => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// Returns a sentence that says what happened and what to do.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::MissingParameter => "A required parameter is missing.",
            Self::DuplicateParameter => "A parameter is given more than once; give each one once.",
            Self::InvalidNumber => {
                "The number must be 4 to 15 digits: 8 for a local one, with country code for an \
                 international one."
            }
            Self::InvalidMessage => "The message must have at least one character and no NUL.",
            Self::MessageTooLong => {
                "The message is longer than allowed; shorten it or send it in parts."
            }
            Self::InvalidRequestid => "The requestid must have 1 to 255 characters and no NUL.",
            Self::InvalidParameter => "A parameter has a value that can't be used.",
            Self::AmbiguousBulk => "Give either bulksms, or numbers with message, not both.",
            Self::InvalidFile => {
                "The file has bad rows, so no row was accepted. Correct them and upload it again."
            }
            Self::InvalidEncoding => {
                "The request isn't valid UTF-8; encode it as UTF-8 and try again."
            }
            Self::InvalidUrl => "Events can't be delivered to this address; use another one.",
            Self::TooManyWebhooks => {
                "There are 10 endpoints for this key already; remove one first."
            }
            Self::NotCancellable => {
                "Nothing is left to cancel: a carrier has it or may have it, or it's final already."
            }
            Self::BatchEnded => {
                "The batch is done or was cancelled; it can't be paused or resumed."
            }
            Self::VerifyEnded => {
                "The code is verified, expired, used up or was sent as often as allowed; start a \
                 new verification."
            }
            Self::SenderPending => "The sender name is still waiting to be accepted.",
            Self::SenderRejected => {
                "The sender name was rejected; request another one in My Applications."
            }
            Self::OptedOut => {
                "The recipient asked for no more messages from this application; nothing was sent."
            }
            Self::TestKeyRequired => "This call needs the application's test key.",
            Self::InternationalDisabled => {
                "The application's limits don't allow this destination; see its settings."
            }
            Self::DoubtfulNumber => {
                "The number is probably a mistake, and the application's limits refuse such \
                 numbers; correct it."
            }
            Self::TrafficPumping => {
                "Too many messages go to numbers like this one; nothing was sent. See the \
                 application's settings."
            }
            Self::AddressNotAllowed => {
                "The application's limits don't allow requests from this address; see its settings."
            }
            Self::LeakedKey => {
                "The request shows that the API key has leaked; replace the key in My Applications."
            }
            Self::LimitsLocked => {
                "Limits can be changed in the application's settings only, unless its owner allows \
                 changes by API."
            }
            Self::NotFound => "There is nothing at this address; check the path.",
            Self::MethodNotAllowed => "This method isn't allowed here; see the Allow header.",
            Self::Timeout => "The request took too long to arrive; nothing was sent. Try again.",
            Self::TooLarge => "The request is larger than allowed.",
            Self::UnsupportedMediaType => "This content type isn't supported here.",
            Self::IdempotencyInProgress => {
                "A request with this Idempotency-Key is still in progress."
            }
            Self::IdempotencyMismatch => "This Idempotency-Key was used for another request.",
            Self::RateLimited => "Too many requests; wait as long as Retry-After says.",
            Self::RecipientFlooded => {
                "The recipient has had as many messages as the application's limits allow; wait as \
                 long as Retry-After says."
            }
            Self::SpendCapReached => {
                "The application has spent as much today as its limits allow; wait as long as \
                 Retry-After says, or raise the limit in its settings."
            }
            Self::Internal => {
                "Something went wrong on our side; nothing was sent and nothing charged."
            }
            Self::Unavailable => {
                "The service is busy; nothing was sent. Try again as Retry-After says."
            }
            Self::InsufficientFunds => {
                "The balance doesn't cover this; make a deposit with the application's reference."
            }
            Self::ApiPending => {
                "The application is still pending; request its activation in My Applications, \
                 or wait until support has approved the request."
            }
            Self::ApiSuspended => "The application is suspended; contact support.",
            Self::ApiInvalid => {
                "The API key isn't known. If yours is lost, replace it in My Applications."
            }
            Self::ApiNotApplicable => "The application's category doesn't cover SMS.",
        }
    }
}
