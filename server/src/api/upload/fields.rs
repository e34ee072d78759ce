//! The parameters of an upload, one after the other, from wherever they come.

use domain::{BadFile, BulkMode, BulkWriting, Reason};
use service::{Spooled, Upload, UploadError, UploadPermit};

use crate::api::answer::Failure;
use crate::api::parameters::{Given, Parameters};

/// The parameters of an upload.
const KNOWN: [&str; 5] = ["bulksms", "numbers", "message", "requestid", "dryrun"];
/// Those that aren't a file.
const SMALL: [&str; 3] = ["message", "requestid", "dryrun"];
/// Bytes of a character in UTF-8, at most.
const CHARACTER_BYTES_MAX: usize = 4;

/// Takes parameters in: files go to disk as they come, small ones stay in memory.
pub struct Fields<'a> {
    permit: &'a UploadPermit,
    small: Parameters,
    /// Bytes of a small parameter that are kept: more than any may have, so that what is cut off is
    /// too long with what is left.
    small_bytes_max: usize,
    open: Open,
    file: Option<File>,
}

/// The parameter that is being read.
enum Open {
    /// One that isn't known.
    Unknown,
    Small {
        name: &'static str,
        value: Vec<u8>,
    },
    File(BulkMode, Box<Upload>),
}

/// The file, once it is whole.
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

    /// A parameter begins, whose value is written so; `None` for a name that isn't text. That a
    /// small one came before is said in its turn, after the file.
    ///
    /// # Errors
    /// `duplicate_parameter` for a second file, `ambiguous_bulk`, or what is broken.
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
        Ok(Open::Small {
            name,
            value: Vec::new(),
        })
    }

    /// More of its value.
    ///
    /// # Errors
    /// `too_large`, or what is broken.
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

    /// The parameter is whole.
    ///
    /// # Errors
    /// `too_large`, or what is broken. Bad rows are no error yet: other faults come before them.
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

    /// What came.
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
