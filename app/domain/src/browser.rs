//! Names for browsers.

/// Returns the names of the browser and the operating system in a `User-Agent` header. The client
/// controls the header, so mails may repeat nothing of it except these fixed names.
pub fn browser_name(user_agent: &str) -> String {
    const BROWSERS: [(&str, &str); 5] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        // Last, because Edge and Opera also name these two in their user agents, and Chrome also
        // names Safari.
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
        table.iter().find(|(sign, _)| user_agent.contains(sign)).map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => "Unknown browser".to_owned(),
    }
}
