//! Refusals of the SMS API, each with its response code, HTTP status and sentence.

use crate::words::words;

words! {
    /// Why the API refused a request. Clients may match on the stable string that `as_str` returns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason [
        /// The response code from the specification.
        pub code: u16,
        /// The HTTP status. Refusals by a business rule never use 502, 503 or 504, because
        /// proxies and clients retry those.
        pub http_status: u16,
        /// What happened and what to do.
        pub sentence: &'static str,
        /// More about what the caller can do, for the API reference.
        pub advice: &'static str,
    ] {
        MissingParameter = "missing_parameter", 500, 400,
            "A required parameter is missing.",
            "Give number and message. An upload needs bulksms, or numbers and message. Check that \
             the Content-Type matches the body.";
        DuplicateParameter = "duplicate_parameter", 500, 400,
            "A parameter is given more than once; give each one once.",
            "Give each parameter once: in the address or in the body, not in both.";
        InvalidNumber = "invalid_number", 500, 400,
            "The number must be 4 to 15 digits: 8 for a local one, with country code for an \
             international one.",
            "Leave out spaces and hyphens. Write a leading + as %2B in an address.";
        InvalidMessage = "invalid_message", 500, 400,
            "The message must have at least one character and no NUL.",
            "Check that the text isn't empty before you send it.";
        MessageTooLong = "message_too_long", 500, 400,
            "The message is longer than allowed; shorten it or send it in parts.",
            "Shorten the text, or send several messages. The counter for texts shows its pages.";
        InvalidRequestid = "invalid_requestid", 500, 400,
            "The requestid must have 1 to 255 characters and no NUL.",
            "Shorten it, or leave it out: it is only for look-ups.";
        InvalidParameter = "invalid_parameter", 500, 400,
            "A parameter has a value that can't be used.",
            "Compare the parameter with the API reference. Check that the address is encoded \
             correctly.";
        AmbiguousBulk = "ambiguous_bulk", 500, 400,
            "Give either bulksms, or numbers with message, not both.",
            "Choose one kind of upload, and leave out the other's fields.";
        InvalidFile = "invalid_file", 500, 400,
            "The file has bad rows, so no row was accepted. Correct them and upload it again.",
            "Correct the lines that errors lists. If error_count is larger, upload the file with \
             dryrun=1, which sends nothing, until no errors are left.";
        InvalidEncoding = "invalid_encoding", 500, 400,
            "The request isn't valid UTF-8; encode it as UTF-8 and try again.",
            "Encode text as UTF-8. In an address or form, write each byte as % and two hex digits.";
        InvalidUrl = "invalid_url", 500, 400,
            "Events can't be delivered to this address; use another one.",
            "Give an https address on the public Internet, without user name and password.";
        SenderPending = "sender_pending", 500, 403,
            "The sender name is still waiting to be accepted.",
            "Wait for the decision about the name, or withdraw it on the application's page.";
        SenderRejected = "sender_rejected", 500, 403,
            "The sender name was rejected; request another one in My Applications.",
            "Read the reason on the application's page, and request another name or withdraw this \
             one there.";
        OptedOut = "opted_out", 500, 403,
            "The recipient asked for no more messages from this application; nothing was sent.",
            "Don't send to this number. It is on the application's list of opt-outs, until the \
             recipient writes START or you remove it there.";
        TestKeyRequired = "test_key_required", 500, 403,
            "This call needs the application's test key.",
            "Use the test key, which the application's page Keys can replace. Calls below \
             /sms/test change nothing for live messages.";
        InternationalDisabled = "international_disabled", 500, 403,
            "The application's limits don't allow this destination; see its settings.",
            "Check the number. If the destination is right, allow it in the application's \
             settings.";
        DoubtfulNumber = "doubtful_number", 500, 403,
            "The number is probably a mistake, and the application's limits refuse such numbers; \
             correct it.",
            "Write a local number with 8 digits, and an international one with its country code.";
        TrafficPumping = "traffic_pumping", 500, 403,
            "Too many messages go to numbers like this one; nothing was sent. See the \
             application's settings.",
            "Find out who asks for these messages. Raise the number in the application's settings \
             if they are wanted.";
        AddressNotAllowed = "address_not_allowed", 500, 403,
            "The application's limits don't allow requests from this address; see its settings.",
            "Send from one of the addresses in the application's settings, or add this one there.";
        LeakedKey = "leaked_key", 500, 403,
            "The request shows that the API key has leaked; replace the key in My Applications.",
            "Replace the key, and use it only on a server, over HTTPS and in the header \
             Authorization.";
        LimitsLocked = "limits_locked", 500, 403,
            "Limits can be changed in the application's settings only, unless its owner allows \
             changes by API.",
            "Change the limits in the application's settings, or allow changes by API there.";
        NotFound = "not_found", 500, 404,
            "There is nothing at this address; check the path.",
            "Compare the path and the id in it with the API reference.";
        MethodNotAllowed = "method_not_allowed", 500, 405,
            "This method isn't allowed here; see the Allow header.",
            "Use one of the methods in the header Allow.";
        Timeout = "timeout", 500, 408,
            "The request took too long to arrive; nothing was sent. Try again.",
            "Send it again, with a shorter body or by a faster connection.";
        TooLarge = "too_large", 500, 413,
            "The request is larger than allowed.",
            "Split the file. Put a text into the body, not into the address.";
        UnsupportedMediaType = "unsupported_media_type", 500, 415,
            "This content type isn't supported here.",
            "Send the body as JSON, as form fields or as multipart, with its Content-Type.";
        IdempotencyInProgress = "idempotency_in_progress", 500, 409,
            "A request with this Idempotency-Key is still in progress.",
            "Wait as long as Retry-After says, and send the same request again.";
        IdempotencyMismatch = "idempotency_mismatch", 500, 422,
            "This Idempotency-Key was used for another request.",
            "Use a new Idempotency-Key for each new request, and the same one only to repeat it.";
        TooManyWebhooks = "too_many_webhooks", 500, 409,
            "There are 10 endpoints for this key already; remove one first.",
            "Remove an endpoint that you no longer need.";
        NotCancellable = "not_cancellable", 500, 409,
            "Nothing is left to cancel: a carrier has it or may have it, or it's final already.",
            "Look the message or the batch up: its status says what has become of it.";
        BatchEnded = "batch_ended", 500, 409,
            "The batch is done or was cancelled; it can't be paused or resumed.",
            "Look the batch up: its counts say what has become of its rows.";
        VerifyEnded = "verify_ended", 500, 409,
            "The code is verified, expired, used up or was sent as often as allowed; start a new \
             verification.",
            "Start a new verification with number instead of verifyid.";
        RateLimited = "rate_limited", 500, 429,
            "Too many requests; wait as long as Retry-After says.",
            "Wait as long as Retry-After says, and spread your calls.";
        RecipientFlooded = "recipient_flooded", 500, 429,
            "The recipient has had as many messages as the application's limits allow; wait as \
             long as Retry-After says.",
            "Check why your program sends so much to this recipient. Wait as long as Retry-After \
             says.";
        SpendCapReached = "spend_cap_reached", 500, 429,
            "The application has spent as much today as its limits allow; wait as long as \
             Retry-After says, or raise the limit in its settings.",
            "Check what your program sends. Raise the limit in the application's settings, or wait \
             as long as Retry-After says.";
        Internal = "internal", 500, 500,
            "Something went wrong on our side; nothing was sent and nothing charged.",
            "Send it again, with an Idempotency-Key. If it fails again, tell support the \
             X-Request-Id.";
        Unavailable = "unavailable", 500, 503,
            "The service is busy; nothing was sent. Try again as Retry-After says.",
            "Send it again after the number of seconds in Retry-After.";
        InsufficientFunds = "insufficient_funds", 501, 402,
            "The balance doesn't cover this; make a deposit with the application's reference.",
            "Deposit with the application's reference, as its page says. Then send again.";
        ApiPending = "api_pending", 502, 403,
            "The application is still pending; request its activation in My Applications, or wait \
             until support has approved the request.",
            "Request activation on the application's page. The test key works meanwhile.";
        ApiSuspended = "api_suspended", 503, 403,
            "The application is suspended; contact support.",
            "Contact support. The application's page has the reason.";
        ApiInvalid = "api_invalid", 504, 401,
            "The API key isn't known. If yours is lost, replace it in My Applications.",
            "Check that you copied the whole key. If it is lost or was replaced, replace it on the \
             application's page Keys and use the new one. A key is shown only once.";
        ApiNotApplicable = "api_not_applicable", 505, 403,
            "The application's category doesn't cover SMS.",
            "Use the key of an application of the category SMS.";
    }
}

/// The response code of a successful request.
pub const CODE_SUCCESS: u16 = 200;
