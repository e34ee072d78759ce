//! Collects the parameters of an upload one by one, from the query and the body.

use domain::{BadFile, BulkMode, BulkWriting, Reason};
use service::{Spooled, Upload, UploadError, UploadPermit};

use crate::api::answer::Failure;
use crate::api::parameters::{Given, Parameters};

/// The parameters of an upload.
const KNOWN: [&str; 5] = ["bulksms", "numbers", "message", "requestid", "dryrun"];
/// The parameters that aren't files.
const SMALL: [&str; 3] = ["message", "requestid", "dryrun"];
/// The most bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: usize = 4;

/// Collects parameters. Files go to disk as they arrive. Small parameters stay in memory.
pub struct Fields<'a> {
    permit: &'a UploadPermit,
    small: Parameters,
    /// How many bytes of a small parameter are kept. The limit is above every allowed length, so a
    /// truncated value is still too long.
    small_bytes_max: usize,
    open: Open,
    file: Option<File>,
}

/// The parameter that is being received.
enum Open {
    /// A parameter that isn't known.
    Unknown,
    Small {
        name: &'static str,
        value: Vec<u8>,
    },
    File(BulkMode, Box<Upload>),
}

/// A file that has been received completely.
pub struct File {
    pub mode: BulkMode,
    pub rows: Result<Spooled, BadFile>,
}

impl<'a> Fields<'a> {
    /// `characters_max` is the length of the longest small parameter.
    pub fn new(permit: &'a UploadPermit, characters_max: usize) -> Self {
        Self {
            permit,
            small: Parameters::of_query(&KNOWN, None),
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
        self.open = match name {
            Some(name @ "bulksms") => self.begin_file(name, BulkMode::OneToOne, writing).await?,
            Some(name @ "numbers") => self.begin_file(name, BulkMode::OneToMany, writing).await?,
            Some(name) if let Some(small) = SMALL.into_iter().find(|small| *small == name) => {
                self.begin_small(small)?
            }
            name => {
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
    ) -> Result<Open, Failure> {
        match &self.file {
            Some(file) if file.mode == mode => return Err(Failure::duplicate(name)),
            Some(_) => return Err(Reason::AmbiguousBulk.into()),
            None if mode == BulkMode::OneToOne && self.small.has("message") => {
                return Err(Reason::AmbiguousBulk.into());
            }
            None => {}
        }
        let upload = self.permit.upload(mode, writing).await?;
        Ok(Open::File(mode, Box::new(upload)))
    }

    fn begin_small(&self, name: &'static str) -> Result<Open, Failure> {
        let one_to_one = |file: &File| file.mode == BulkMode::OneToOne;
        if name == "message" && self.file.as_ref().is_some_and(one_to_one) {
            return Err(Reason::AmbiguousBulk.into());
        }
        Ok(Open::Small { name, value: Vec::new() })
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
            Open::File(_, upload) => upload.write(data).await.map_err(failure),
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
            Open::Small { name, value } => {
                let cut = value.len() == self.small_bytes_max;
                self.small.add_bytes(Some(name), value, cut);
            }
            Open::File(mode, upload) => {
                let rows = match upload.finish().await {
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
    pub fn finish(self) -> (Option<File>, Parameters) {
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
