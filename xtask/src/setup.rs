//! What builds and tests need from the system.

use std::process::{Command, ExitCode, Stdio};

use crate::Result;

/// Something that must be there, how to see whether it is, and the Debian package that brings it.
struct Need {
    what: &'static str,
    package: &'static str,
    is_there: fn() -> bool,
}

const BUILD: [Need; 7] = [
    Need {
        what: "a C++ compiler",
        package: "g++",
        is_there: || runs("c++", &["--version"]),
    },
    Need {
        what: "make",
        package: "make",
        is_there: || runs("make", &["--version"]),
    },
    Need {
        what: "cmake",
        package: "cmake",
        is_there: || runs("cmake", &["--version"]),
    },
    Need {
        what: "pkg-config",
        package: "pkg-config",
        is_there: || runs("pkg-config", &["--version"]),
    },
    Need {
        what: "libclang",
        package: "libclang-dev",
        is_there: has_libclang,
    },
    Need {
        what: "OpenSSL's headers",
        package: "libssl-dev",
        is_there: || runs("pkg-config", &["--exists", "openssl"]),
    },
    Need {
        what: "zlib's headers",
        package: "zlib1g-dev",
        is_there: || runs("pkg-config", &["--exists", "zlib"]),
    },
];

const SERVERS: [Need; 3] = [
    Need {
        what: "Java 17 or newer",
        package: "default-jre-headless",
        is_there: has_java,
    },
    Need {
        what: "Maven",
        package: "maven",
        is_there: || runs("mvn", &["--version"]),
    },
    Need {
        what: "Python's venv",
        package: "python3-venv",
        is_there: || runs("python3", &["-c", "import venv, ensurepip"]),
    },
];

/// `cargo xtask setup`.
pub(crate) fn run(kafka: bool) -> Result<ExitCode> {
    ensure(kafka)?;
    println!("everything is there");
    Ok(ExitCode::SUCCESS)
}

/// Installs what is missing, if that is allowed here.
pub(crate) fn ensure(kafka: bool) -> Result<()> {
    let missing = missing(kafka);
    if missing.is_empty() {
        return Ok(());
    }
    let what: Vec<&str> = missing.iter().map(|need| need.what).collect();
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let (what, command) = (
        what.join(", "),
        format!(
            "apt-get install -y --no-install-recommends {}",
            packages.join(" ")
        ),
    );
    let sudo = if is_root() {
        ""
    } else if runs("sudo", &["-n", "true"]) {
        "sudo -n "
    } else {
        return Err(format!("missing: {what}; type: sudo {command}"));
    };
    if !runs("apt-get", &["--version"]) {
        return Err(format!(
            "missing: {what}; install what Debian has as: {}",
            packages.join(" ")
        ));
    }
    eprintln!("xtask: missing: {what}; installing: {sudo}{command}");
    let script =
        format!("export DEBIAN_FRONTEND=noninteractive; {sudo}apt-get update -q >&2; {sudo}{command} >&2");
    let installed = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .status();
    match self::missing(kafka).first() {
        None => Ok(()),
        Some(need) => Err(format!(
            "{} is still missing after `{command}` ({}); type that yourself and look at what it says",
            need.what,
            installed.map_or_else(|error| error.to_string(), |status| status.to_string())
        )),
    }
}

fn missing(kafka: bool) -> Vec<&'static Need> {
    let needed = BUILD.iter().chain(if kafka { &SERVERS[..] } else { &[] });
    needed.filter(|need| !(need.is_there)()).collect()
}

fn runs(program: &str, args: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    output("id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    // Java tells its version on stderr.
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// Where the bindings generator looks: its own variable, then LLVM's directories.
fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let llvm = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let llvm = llvm
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm"))
        .map(|e| e.path().join("lib"));
    let arch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    llvm.chain([arch.into(), "/usr/lib64".into(), "/usr/lib".into()])
        .any(|dir: std::path::PathBuf| {
            let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
            files
                .map(|file| file.file_name())
                .any(|name| is_libclang(&name.to_string_lossy()))
        })
}

/// `libclang.so`, `libclang.so.1`, `libclang-14.so.1`; not `libclang-cpp.so.14`, which comes without it.
fn is_libclang(name: &str) -> bool {
    let version = |part: &str| part.starts_with(|first: char| first.is_ascii_digit());
    name.strip_prefix("libclang").is_some_and(|rest| {
        let (middle, end) = rest.split_once(".so").unwrap_or(("?", ""));
        let middle_fits = middle.is_empty() || middle.strip_prefix('-').is_some_and(version);
        middle_fits && (end.is_empty() || end.strip_prefix('.').is_some_and(version))
    })
}

fn has_java() -> bool {
    let said = output("java", &["-version"]).unwrap_or_default();
    let version = said
        .split('"')
        .nth(1)
        .and_then(|version| version.split(['.', '-']).next()?.parse::<u32>().ok());
    version.is_some_and(|version| version >= 17)
}

#[cfg(test)]
mod tests {
    use super::is_libclang;

    #[test]
    fn the_library_is_told_from_those_that_only_sound_like_it() {
        for name in [
            "libclang.so",
            "libclang.so.1",
            "libclang-14.so.1",
            "libclang-14.0.6.so",
        ] {
            assert!(is_libclang(name), "{name}");
        }
        for name in [
            "libclang-cpp.so.14",
            "libclang-cpp.so",
            "libclang.a",
            "libclang",
            "libclangAST.so",
        ] {
            assert!(!is_libclang(name), "{name}");
        }
    }
}
