//! The notice shown before and after a session ends. The page asks the server for the end of the
//! session, since the session may be in use in another tab.

use leptos::prelude::*;

use crate::account::Viewer;
use crate::page_data::PageData;

/// The time before the session's end at which the notice appears.
#[cfg(feature = "hydrate")]
const NOTICE_MS: i64 = 5 * 60 * 1000;

/// The notice's states.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "hydrate"), expect(dead_code, reason = "only a browser shows the notice"))]
enum Notice {
    None,
    /// The session will end because it hasn't been used.
    Idle,
    /// The session will end because of its age.
    Old,
    Over,
}

/// The notice. Screen readers announce it when it appears.
#[component]
pub fn SessionNotice(viewer: PageData<Option<Viewer>>) -> impl IntoView {
    let notice = RwSignal::new(Notice::None);
    #[cfg(feature = "hydrate")]
    watch::begin(viewer, notice);
    let stay = move |_| viewer.load_again();
    view! {
        <div class="session-notice" aria-live="polite" aria-atomic="true">
            {move || match notice.get() {
                Notice::None => None,
                Notice::Idle => Some(view! {
                    <p>
                        "You haven't used this page for a while. You will be signed out in less \
                         than 5 minutes."
                    </p>
                    <button type="button" class="button" on:click=stay>"Stay signed in"</button>
                }
                .into_any()),
                Notice::Old => Some(view! {
                    <p>
                        "You will be signed out in less than 5 minutes, 12 hours after you signed \
                         in. " <SignInAgain/>
                    </p>
                }
                .into_any()),
                Notice::Over => Some(view! { <p>"You are signed out. " <SignInAgain/></p> }
                .into_any()),
            }}
        </div>
    }
}

/// Opens a new tab, so that the text typed into this page stays.
#[component]
fn SignInAgain() -> impl IntoView {
    view! {
        <a href="/login" target="_blank">"Sign in again in a new tab"</a>
        ", then continue here. The text that you typed stays."
    }
}

#[cfg(feature = "hydrate")]
mod watch {
    use std::time::Duration;

    use domain::records::SessionEnd;
    use leptos::leptos_dom::helpers::TimeoutHandle;
    use leptos::prelude::*;

    use super::{NOTICE_MS, Notice};
    use crate::account::{LoadSession, Viewer};
    use crate::client::call;
    use crate::page_data::PageData;

    /// The interval between requests to the server while the notice is shown.
    const AGAIN_MS: i64 = 60 * 1000;

    /// The notice, and the timer for the next request to the server.
    #[derive(Clone, Copy)]
    struct Watch {
        notice: RwSignal<Notice>,
        timer: StoredValue<Option<TimeoutHandle>>,
    }

    /// Shows the notice when the session is about to end.
    pub fn begin(viewer: PageData<Option<Viewer>>, notice: RwSignal<Notice>) {
        let timer = StoredValue::new(None);
        let watch = Watch { notice, timer };
        Effect::new(move |_| match viewer.now() {
            Some(Ok(Some(viewer))) => watch.go_on(viewer.session_end),
            Some(Ok(None)) => watch.rest(Notice::None),
            _ => {}
        });
        // A sign-in in another tab also signs this page in, so check when the window gets the
        // focus.
        let focused = window_event_listener(leptos::ev::focus, move |_| {
            if notice.get_untracked() == Notice::Over {
                watch.check();
            }
        });
        on_cleanup(move || focused.remove());
    }

    impl Watch {
        fn go_on(self, end: Option<SessionEnd>) {
            let Some(SessionEnd { in_ms, idle }) = end else {
                return self.rest(Notice::Over);
            };
            let (notice, check_in_ms) = match in_ms - NOTICE_MS {
                // The extra second makes sure that the session has ended when the timer fires.
                early if early > 0 => (Notice::None, early + 1000),
                _ if idle => (Notice::Idle, in_ms.min(AGAIN_MS) + 1000),
                _ => (Notice::Old, in_ms.min(AGAIN_MS) + 1000),
            };
            self.rest(notice);
            let later = Duration::from_millis(check_in_ms.unsigned_abs());
            let timer = set_timeout_with_handle(move || self.check(), later).ok();
            self.timer.try_set_value(timer);
        }

        /// Shows a notice and stops the timer.
        fn rest(self, notice: Notice) {
            if let Some(Some(timer)) = self.timer.try_get_value() {
                timer.clear();
            }
            self.timer.try_set_value(None);
            // Screen readers would announce an unchanged notice again.
            if self.notice.try_get_untracked() != Some(notice) {
                self.notice.try_set(notice);
            }
        }

        fn check(self) {
            leptos::task::spawn_local(async move {
                match call(LoadSession {}).await {
                    Ok(end) => self.go_on(end),
                    // The end isn't known. Check again in a minute.
                    Err(_) => {
                        self.go_on(Some(SessionEnd { in_ms: NOTICE_MS + AGAIN_MS, idle: true }));
                    }
                }
            });
        }
    }
}
