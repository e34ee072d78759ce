//! The data of pages: what a server function answers, loaded again when its arguments change.
//!
//! All pages share one resource type, whose value is the answer as JSON: a type of its own for each
//! page would compile the library's code for loading, waiting and hydrating anew for each, which
//! makes the portal's WebAssembly half as large again.

use std::marker::PhantomData;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use answer::Answer;

use crate::problem::Problem;

/// The answer of a server function that a page is made of.
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
    /// Calls a server function now, and again when a signal that `function` reads has changed.
    pub fn new<S>(function: impl Fn() -> S + Send + Sync + 'static) -> Self
    where
        S: ServerFn<Error = Problem, Output = T> + Serialize + Send + 'static,
    {
        Self {
            answer: answer::load(function),
            of: PhantomData,
        }
    }

    /// Waits for the answer.
    pub async fn get(self) -> Result<T, Problem> {
        self.answer.await?.read()
    }

    /// The answer, if there is one by now.
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

/// On the server an answer keeps its type: a page is made of it without writing and reading JSON.
#[cfg(feature = "ssr")]
mod answer {
    use std::any::Any;
    use std::sync::Arc;

    use leptos::prelude::*;
    use leptos::server_fn::ServerFn;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::value::{RawValue, to_raw_value};

    use crate::problem::{Cause, Problem};

    /// An answer of any server function.
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

        /// The answer as what the function gave.
        ///
        /// # Errors
        /// When it was another function's.
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

    /// What the library asks of every resource; only browsers read answers out of pages.
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

/// In a browser an answer is JSON until a page reads it.
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

    /// An answer of any server function.
    #[derive(Clone, Serialize, Deserialize)]
    pub struct Answer(Box<RawValue>);

    impl Answer {
        /// The answer as what the function gave.
        ///
        /// # Errors
        /// When the JSON is of another shape: the page is older than the server.
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
        // The same request is sent again when a form was accepted: its answer may be another one.
        let runs = AtomicUsize::new(0);
        let source = move || (runs.fetch_add(1, Ordering::Relaxed), request());
        Resource::new(source, |(_, request)| async move { request?.send().await })
    }
}
