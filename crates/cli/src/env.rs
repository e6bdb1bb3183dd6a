//! `${NAME}`, `${NAME:-default}` and `$$` in the strings of a job file.

/// Puts values in the place of names.
///
/// `lookup` gives the value of a name. As in a shell, `:-` also stands in for an empty value. A `$` that starts none of
/// the three forms stays as it is, so that a regular expression's `^a$` needs no care.
///
/// # Errors
/// What is wrong, in words: a name without value and default, or a form that does not end. Values are never part of it.
pub(crate) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let end = after
                .find('}')
                .ok_or("`${` has no closing `}`; write `$${` for the characters themselves")?;
            out.push_str(&value(&after[..end], lookup)?);
            rest = &after[end + 1..];
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn value(form: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match form.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (form, None),
    };
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!(
            "`${{{form}}}` is not `${{NAME}}` or `${{NAME:-default}}`; write `$$` for a dollar sign"
        ));
    }
    match (lookup(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!(
            "environment variable `{name}` is not set and has no default; set it, or write `${{{name}:-default}}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let lookup = |name: &str| match name {
            "TAG" => Some("v7".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let got = expand(text, &lookup);
        match expected {
            Ok(expected) => assert_eq!(got.as_deref(), Ok(expected), "{text}"),
            Err(part) => assert!(got.as_ref().is_err_and(|e| e.contains(part)), "{text}: {got:?}"),
        }
    }

    #[test]
    fn names_are_replaced_by_values_and_defaults() {
        check("a-${TAG}-b", Ok("a-v7-b"));
        check("${TAG:-v1}${NONE:-v1}", Ok("v7v1"));
        check("${EMPTY:-x}|${EMPTY}|${NONE:-}", Ok("x||"));
        check("${NONE:-a:-b}", Ok("a:-b"));
    }

    #[test]
    fn dollars_that_start_no_form_stay() {
        check("$$ $${TAG} ^a$ $1", Ok("$ ${TAG} ^a$ $1"));
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        check("${NONE}", Err("`NONE` is not set"));
        check("${TAG", Err("closing"));
        check("${}", Err("is not `${NAME}`"));
        check("${A B}", Err("is not `${NAME}`"));
    }
}
