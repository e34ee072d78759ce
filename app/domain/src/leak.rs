//! Signs that an API key has leaked. A program on a server shows none of them.

use crate::words::words;

words! {
    /// How a request shows that its key has leaked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Leak [
        /// What happened, for mails and pages.
        pub sentence: &'static str,
    ] {
        /// A browser made the request, so everybody who opens the page can read the key.
        Browser = "browser", "A browser used the API key.";
        /// A program previewed a link that has the key, so the key is in a chat or a mail.
        LinkPreview = "link_preview", "A program that previews links used the API key.";
        /// The request crossed a network unencrypted on its way to our proxy.
        PlainHttp = "plain_http", "A request with the API key came over plain HTTP.";
    }
}

/// Parts of the user agents of programs that preview links.
const PREVIEWS: [&str; 12] = [
    "facebookexternalhit",
    "twitterbot",
    "slackbot",
    "whatsapp",
    "telegrambot",
    "discordbot",
    "linkedinbot",
    "skypeuripreview",
    "googlebot",
    "bingbot",
    "applebot",
    "iframely",
];

/// The headers of a request that can be signs of a leak.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeakSigns<'a> {
    pub referer: Option<&'a str>,
    /// `Sec-Fetch-Mode`.
    pub fetch_mode: Option<&'a str>,
    pub user_agent: Option<&'a str>,
    /// `X-Forwarded-Proto` from a trusted proxy.
    pub forwarded_proto: Option<&'a str>,
}

impl Leak {
    /// Returns the first sign in a request.
    pub fn find(signs: LeakSigns<'_>) -> Option<Self> {
        let agent = signs.user_agent.map(str::to_ascii_lowercase).unwrap_or_default();
        if PREVIEWS.iter().any(|preview| agent.contains(preview)) {
            return Some(Self::LinkPreview);
        }
        if signs.referer.is_some_and(|referer| !referer.is_empty())
            || signs.fetch_mode == Some("navigate")
        {
            return Some(Self::Browser);
        }
        let is_plain =
            signs.forwarded_proto.is_some_and(|proto| proto.eq_ignore_ascii_case("http"));
        is_plain.then_some(Self::PlainHttp)
    }
}
