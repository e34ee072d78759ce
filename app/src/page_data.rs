//! The data of a page: the result of a server function, reloaded when the arguments change.
//!
//! All pages share one resource type, which holds the result as JSON. A separate type per page
//! would compile Leptos's code for loading, waiting and hydrating once per page, which makes the
//! portal's WebAssembly 50% larger.

use std::marker::PhantomData;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use answer::Answer;

use crate::problem::Problem;

/// The result of the server function that provides a page's data.
pub struct PageData<T> {
    pub(crate) answer: Resource<Result<Answer, Problem>>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for PageData<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PageData<T> {}

impl<T> PageData<T>
where
    T: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
{
    /// Calls a server function now, and again whenever a signal that `function` reads changes.
    pub fn new<S>(function: impl Fn() -> S + Send + Sync + 'static) -> Self
    where
        S: ServerFn<Error = Problem, Output = T> + Serialize + Send + 'static,
    {
        Self { answer: answer::load(function), of: PhantomData }
    }

    /// Waits for the result.
    pub async fn get(self) -> Result<T, Problem> {
        self.answer.await?.read()
    }

    /// Returns the result if it has arrived.
    #[cfg(feature = "hydrate")]
    pub fn now(self) -> Option<Result<T, Problem>> {
        let answer = self.answer.get()?;
        Some(answer.and_then(|answer| answer.read()))
    }

    /// Calls the function again.
    pub fn load_again(self) {
        self.answer.refetch();
    }
}

/// On the server, a result keeps its type, so that rendering needs no JSON.
#[cfg(feature = "ssr")]
mod answer {
    use std::any::Any;
    use std::sync::Arc;

    use leptos::prelude::*;
    use leptos::server_fn::ServerFn;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::value::{RawValue, to_raw_value};

    use crate::problem::{Cause, Problem};

    /// The result of any server function.
    #[derive(Clone)]
    pub struct Answer {
        value: Arc<dyn Any + Send + Sync>,
        json: fn(&dyn Any) -> Option<Box<RawValue>>,
    }

    impl Answer {
        fn new<T: Serialize + Send + Sync + 'static>(value: T) -> Self {
            Self {
                value: Arc::new(value),
                json: |value| to_raw_value(value.downcast_ref::<T>()?).ok(),
            }
        }

        /// Returns the result as the function's type.
        ///
        /// # Errors
        /// If the result is another function's.
        pub fn read<T: Clone + 'static>(&self) -> Result<T, Problem> {
            let value = self.value.downcast_ref::<T>().cloned();
            value.ok_or_else(|| Cause::Failed.into())
        }
    }

    impl Serialize for Answer {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let json = (self.json)(self.value.as_ref());
            json.ok_or_else(|| serde::ser::Error::custom("the answer can't be written as JSON"))?
                .serialize(to)
        }
    }

    /// Leptos requires this of every resource. Only browsers read results from pages.
    impl<'de> Deserialize<'de> for Answer {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            Box::<RawValue>::deserialize(from).map(Self::new)
        }
    }

    pub fn load<S>(
        function: impl Fn() -> S + Send + Sync + 'static,
    ) -> Resource<Result<Answer, Problem>>
    where
        S: ServerFn<Error = Problem> + Send + 'static,
        S::Output: Serialize + Send + Sync + 'static,
    {
        let answer = move |()| {
            let answer = S::run_body(function());
            async move { answer.await.map(Answer::new) }
        };
        Resource::new(|| (), answer)
    }
}

/// In the browser, a result stays JSON until a page reads it.
#[cfg(not(feature = "ssr"))]
mod answer {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use leptos::prelude::*;
    use leptos::server_fn::ServerFn;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};
    use serde_json::value::RawValue;

    use crate::client::Request;
    use crate::problem::{Cause, Problem};

    /// The result of any server function.
    #[derive(Clone, Serialize, Deserialize)]
    pub struct Answer(Box<RawValue>);

    impl Answer {
        /// Returns the result as the function's type.
        ///
        /// # Errors
        /// If the JSON doesn't match the type, because the page is older than the server.
        pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
            serde_json::from_str(self.0.get()).map_err(|_| Cause::Failed.into())
        }
    }

    pub fn load<S>(
        function: impl Fn() -> S + Send + Sync + 'static,
    ) -> Resource<Result<Answer, Problem>>
    where
        S: ServerFn<Error = Problem> + Serialize,
    {
        load_request(Box::new(move || Request::new(&function())))
    }

    fn load_request(
        request: Box<dyn Fn() -> Result<Request, Problem> + Send + Sync>,
    ) -> Resource<Result<Answer, Problem>> {
        // The count makes each run a new source, so that an unchanged request is sent again after a
        // form was accepted.
        let runs = AtomicUsize::new(0);
        let source = move || (runs.fetch_add(1, Ordering::Relaxed), request());
        Resource::new(source, |(_, request)| async move { request?.send().await })
    }
}
