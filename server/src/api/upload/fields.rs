//! Collects the parameters of an upload one by one, from the query and the body.

use domain::{BadFile, BulkMode, BulkWriting, Reason};
use service::{Spooled, Upload, UploadError, UploadPermit};

use crate::api::answer::Failure;
use crate::api::parameters::{Given, Parameters};

/// The most bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: usize = 4;

/// A call that takes files.
pub trait Files: Sync {
    /// A file that is being received.
    type Open: Send;
    /// The rows of a good file.
    type Rows: Send;

    /// The parameters of the call.
    const KNOWN: &'static [&'static str];
    /// The parameters that are files.
    const FILES: &'static [(&'static str, BulkMode)];

    /// Begins a file.
    fn open(
        &self,
        mode: BulkMode,
        writing: BulkWriting,
    ) -> impl Future<Output = Result<Self::Open, Failure>> + Send;
    /// Processes the next bytes of a file.
    fn write(
        file: &mut Self::Open,
        data: &[u8],
    ) -> impl Future<Output = Result<(), UploadError>> + Send;
    /// Ends a file.
    fn finish(file: Self::Open) -> impl Future<Output = Result<Self::Rows, UploadError>> + Send;
}

impl Files for UploadPermit {
    type Open = Box<Upload>;
    type Rows = Spooled;

    const KNOWN: &'static [&'static str] =
        &["bulksms", "numbers", "message", "requestid", "sendat", "validity", "dryrun"];
    const FILES: &'static [(&'static str, BulkMode)] =
        &[("bulksms", BulkMode::OneToOne), ("numbers", BulkMode::OneToMany)];

    async fn open(&self, mode: BulkMode, writing: BulkWriting) -> Result<Box<Upload>, Failure> {
        Ok(Box::new(self.upload(mode, writing).await?))
    }

    async fn write(file: &mut Box<Upload>, data: &[u8]) -> Result<(), UploadError> {
        file.write(data).await
    }

    async fn finish(file: Box<Upload>) -> Result<Spooled, UploadError> {
        file.finish().await
    }
}

/// Collects parameters. Files go to disk as they arrive. Small parameters stay in memory.
pub struct Fields<'a, F: Files> {
    files: &'a F,
    small: Parameters,
    /// How many bytes of a small parameter are kept. The limit is above every allowed length, so a
    /// truncated value is still too long.
    small_bytes_max: usize,
    open: Open<F::Open>,
    file: Option<File<F::Rows>>,
}

/// The parameter that is being received.
enum Open<T> {
    /// A parameter that isn't known.
    Unknown,
    Small {
        name: &'static str,
        value: Vec<u8>,
        writing: BulkWriting,
    },
    File(BulkMode, T),
}

/// A file that has been received completely.
pub struct File<T> {
    pub mode: BulkMode,
    pub rows: Result<T, BadFile>,
}

impl<'a, F: Files> Fields<'a, F> {
    /// `characters_max` is the length of the longest small parameter.
    pub fn new(files: &'a F, characters_max: usize) -> Self {
        Self {
            files,
            small: Parameters::of_query(F::KNOWN, None),
            small_bytes_max: (characters_max + 1).saturating_mul(CHARACTER_BYTES_MAX),
            open: Open::Unknown,
            file: None,
        }
    }

    /// Begins a parameter. `writing` is the encoding of its value, and `name` is `None` if it isn't
    /// text. If a small parameter occurs twice, that is reported later, after errors in the file.
    ///
    /// # Errors
    /// `duplicate_parameter` for a second file, `ambiguous_bulk`, or an internal error.
    pub async fn begin(&mut self, name: Option<&str>, writing: BulkWriting) -> Result<(), Failure> {
        let file = F::FILES.iter().find(|(file, _)| name == Some(*file));
        let known = F::KNOWN.iter().find(|known| name == Some(**known));
        self.open = match (file, known) {
            (Some((name, mode)), _) => self.begin_file(name, *mode, writing).await?,
            (None, Some(small)) => self.begin_small(small, writing)?,
            (None, None) => {
                let given = match writing {
                    BulkWriting::Plain => Given::Text(String::new()),
                    BulkWriting::UrlDecoded => Given::UrlDecoded(String::new()),
                };
                self.small.add(name, given);
                Open::Unknown
            }
        };
        Ok(())
    }

    async fn begin_file(
        &self,
        name: &str,
        mode: BulkMode,
        writing: BulkWriting,
    ) -> Result<Open<F::Open>, Failure> {
        match &self.file {
            Some(file) if file.mode == mode => return Err(Failure::duplicate(name)),
            Some(_) => return Err(Reason::AmbiguousBulk.into()),
            None if mode == BulkMode::OneToOne && self.small.has("message") => {
                return Err(Reason::AmbiguousBulk.into());
            }
            None => {}
        }
        Ok(Open::File(mode, self.files.open(mode, writing).await?))
    }

    fn begin_small(
        &self,
        name: &'static str,
        writing: BulkWriting,
    ) -> Result<Open<F::Open>, Failure> {
        let one_to_one = |file: &File<F::Rows>| file.mode == BulkMode::OneToOne;
        if name == "message" && self.file.as_ref().is_some_and(one_to_one) {
            return Err(Reason::AmbiguousBulk.into());
        }
        Ok(Open::Small { name, value: Vec::new(), writing })
    }

    /// Appends data to the current parameter's value.
    ///
    /// # Errors
    /// `too_large`, or an internal error.
    pub async fn data(&mut self, data: &[u8]) -> Result<(), Failure> {
        match &mut self.open {
            Open::Unknown => Ok(()),
            Open::Small { value, .. } => {
                let room = self.small_bytes_max - value.len();
                value.extend_from_slice(&data[..data.len().min(room)]);
                Ok(())
            }
            Open::File(_, file) => F::write(file, data).await.map_err(failure),
        }
    }

    /// Ends the current parameter.
    ///
    /// # Errors
    /// `too_large`, or an internal error. Bad rows aren't an error yet, because other errors take
    /// precedence.
    pub async fn end(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.open, Open::Unknown) {
            Open::Unknown => {}
            Open::Small { name, value, writing } => {
                let cut = value.len() == self.small_bytes_max;
                self.small.add_bytes(Some(name), value, cut, writing);
            }
            Open::File(mode, file) => {
                let rows = match F::finish(file).await {
                    Ok(spooled) => Ok(spooled),
                    Err(UploadError::Bad(bad)) => Err(bad),
                    Err(error) => return Err(failure(error)),
                };
                self.file = Some(File { mode, rows });
            }
        }
        Ok(())
    }

    /// Returns the file and the small parameters.
    pub fn finish(self) -> (Option<File<F::Rows>>, Parameters) {
        (self.file, self.small)
    }
}

fn failure(error: UploadError) -> Failure {
    match error {
        UploadError::Bad(bad) => Failure::of_file(bad),
        UploadError::TooLarge { limit, of } => Failure::with_detail(
            Reason::TooLarge,
            format!("The file has more than {limit} {of}; upload it in parts."),
        ),
        UploadError::Failed(error) => error.into(),
    }
}
