//! What a browser is called.

/// Browser and operating system, as far as a `User-Agent` names them. Whoever sends the header writes
/// it; the names are all that a mail may repeat of it.
pub fn browser_name(user_agent: &str) -> String {
    const BROWSERS: [(&str, &str); 5] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        // The user agents of the browsers above name these two browsers too.
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let named = |table: &[(&str, &'static str)]| {
        table
            .iter()
            .find(|(sign, _)| user_agent.contains(sign))
            .map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => "Unknown browser".to_owned(),
    }
}
