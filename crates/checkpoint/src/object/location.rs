//! Where a checkpoint on shared storage lies, and how to get there.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path as Prefix;
use object_store::{ObjectStore, RetryConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Result};

/// A prefix in a bucket. What is printed of it never holds a secret.
#[derive(Clone)]
pub struct Place {
    /// The bucket.
    pub store: Arc<dyn ObjectStore>,
    /// The checkpoint's prefix in it.
    pub prefix: Prefix,
    name: PathBuf,
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Place {}

impl Place {
    /// A place in a store that is there already; `name` is what messages call it.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Prefix, name: impl Into<PathBuf>) -> Self {
        Self {
            store,
            prefix,
            name: name.into(),
        }
    }

    /// Reads `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`, with credentials and endpoint from the
    /// variables of the environment that are handed in (`std::env::vars()`): `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_S3_FORCE_PATH_STYLE` (or
    /// `AWS_VIRTUAL_HOSTED_STYLE_REQUEST`), `GOOGLE_…`, `AZURE_…`. Plain HTTP is used when the endpoint says so. Nothing is
    /// connected. `gs` and `az` take the same path and are not tested against a real service.
    ///
    /// # Errors
    /// [`Error::Location`] for another scheme, a missing bucket or prefix, secrets in the text, or settings that do not fit
    /// together.
    pub fn open(text: &str, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let refuse = |reason: &str| Error::Location {
            text: shown(text),
            reason: reason.to_owned(),
        };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| refuse("has no scheme; write s3://bucket/prefix"))?;
        if rest.contains(['@', '?', '#']) {
            return Err(refuse(
                "holds more than bucket and prefix; give credentials in the environment (AWS_ACCESS_KEY_ID and its like)",
            ));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(refuse("names no bucket; write s3://bucket/prefix"));
        }
        let prefix = Prefix::parse(prefix.trim_matches('/'))
            .ok()
            .filter(|prefix| !prefix.as_ref().is_empty())
            .ok_or_else(|| refuse("names no prefix in its bucket; write s3://bucket/prefix"))?;
        let scheme = scheme.to_ascii_lowercase();
        let store = match scheme.as_str() {
            "s3" | "s3a" => s3(bucket, environment),
            "gs" => gs(bucket, environment),
            "az" => az(bucket, environment),
            _ => return Err(refuse("is on no storage known here; write s3://, gs:// or az://")),
        };
        // The store's own words may quote what it was given.
        let store = store.map_err(|_| {
            refuse("cannot be used with the settings of the environment; look at the variables AWS_…, GOOGLE_… or AZURE_…")
        })?;
        let name = format!("{scheme}://{bucket}/{prefix}");
        Ok(Self::new(store, prefix, name))
    }

    /// For messages: the location as text.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.name
    }
}

/// The store's own debug form may hold credentials.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.name).finish()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.display().fmt(f)
    }
}

/// The text without what may be a secret.
fn shown(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://***@{rest}"),
        (None, Some((_, rest))) => format!("***@{rest}"),
        _ => text.to_owned(),
    }
}

/// Retries are decided by `slot` and `requests`, which know what may be repeated.
const fn once() -> RetryConfig {
    RetryConfig {
        backoff: object_store::BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(1),
            base: 2.0,
        },
        max_retries: 0,
        retry_timeout: Duration::from_secs(30),
    }
}

type Opened = object_store::Result<Arc<dyn ObjectStore>>;

fn s3(bucket: &str, environment: impl IntoIterator<Item = (String, String)>) -> Opened {
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(once());
    let mut endpoint = None;
    let mut virtual_hosted = false;
    for (name, value) in environment {
        match name.as_str() {
            "AWS_ENDPOINT_URL" | "AWS_ENDPOINT_URL_S3" | "AWS_ENDPOINT" if !value.is_empty() => {
                // The more specific name wins, as in Amazon's own tools.
                if endpoint.is_none() || name == "AWS_ENDPOINT_URL_S3" {
                    endpoint = Some(value);
                }
            }
            "AWS_S3_FORCE_PATH_STYLE" => virtual_hosted = value.eq_ignore_ascii_case("false") || value == "0",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST" => {
                virtual_hosted = value.eq_ignore_ascii_case("true") || value == "1";
            }
            "AWS_BUCKET" | "AWS_BUCKET_NAME" => {}
            _ => {
                let key = Some(name.to_ascii_lowercase()).filter(|name| name.starts_with("aws_"));
                if let Some(key) = key.and_then(|name| name.parse::<AmazonS3ConfigKey>().ok()) {
                    builder = builder.with_config(key, value);
                }
            }
        }
    }
    builder = builder.with_virtual_hosted_style_request(virtual_hosted);
    if let Some(endpoint) = endpoint {
        builder = builder.with_allow_http(endpoint.starts_with("http://"));
        // In this style the bucket is part of the host.
        let endpoint = match endpoint.split_once("://") {
            Some((scheme, host)) if virtual_hosted && !host.starts_with(&format!("{bucket}.")) => {
                format!("{scheme}://{bucket}.{host}")
            }
            _ => endpoint,
        };
        builder = builder.with_endpoint(endpoint);
    }
    Ok(Arc::new(builder.build()?))
}

fn gs(bucket: &str, environment: impl IntoIterator<Item = (String, String)>) -> Opened {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_retry(once());
    for (name, value) in environment {
        let key = Some(name.to_ascii_lowercase())
            .filter(|name| name.starts_with("google_") && !name.contains("bucket"));
        if let Some(key) = key.and_then(|name| name.parse::<GoogleConfigKey>().ok()) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}

fn az(container: &str, environment: impl IntoIterator<Item = (String, String)>) -> Opened {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(container)
        .with_retry(once());
    for (name, value) in environment {
        let key = Some(name.to_ascii_lowercase())
            .filter(|name| name.starts_with("azure_") && !name.contains("container"));
        if let Some(key) = key.and_then(|name| name.parse::<AzureConfigKey>().ok()) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}
