//! A real S3 server on loopback, through `tools/s3/s3`.

use std::process::Command;

use crate::Result;
use crate::server::Server;

/// A server with an empty bucket `baton`; stopped and wiped when dropped.
pub(crate) struct Store(Server);

impl Store {
    /// Starts one; the first time, it is fetched.
    pub(crate) fn start() -> Result<Self> {
        Server::start("s3").map(Self)
    }

    /// Tells a command and all that it starts about the server, in the usual variables.
    pub(crate) fn told_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let address = self.0.address();
        command
            .env("BATON_TEST_S3", address)
            .env("BATON_REQUIRE_S3", "1")
            .env("AWS_ENDPOINT_URL", format!("http://{address}"))
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "us-east-1")
    }
}
