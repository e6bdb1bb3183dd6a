//! SQL from text to rows: binding, refusals, errors, and Spark's rules that the golden file does not touch.

use baton_core::arrow::array::{Array, ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray};
use baton_core::arrow::schema::SchemaRef;
use baton_core::{BatchStream, Fault, SourceName, Timestamp};
use baton_engine::sql::{Compiler, Error, Query};
use datafusion::arrow::util::display::array_value_to_string;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_767_323_045_678);

fn source(name: &str) -> SourceName {
    SourceName::new(name).expect("a name")
}

fn table(value: Vec<Option<&[u8]>>, n: Vec<Option<i32>>) -> RecordBatch {
    let text: StringArray = n.iter().map(|n| n.map(|n| format!("t{n}"))).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("value", Arc::new(BinaryArray::from(value)), true),
        ("n", Arc::new(Int32Array::from(n)), true),
        ("camelCase", Arc::new(text), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("equal lengths")
}

fn rows() -> RecordBatch {
    table(
        vec![Some(b"ab"), None, Some("h\u{e9}".as_bytes())],
        vec![Some(1), Some(0), None],
    )
}

fn compiler() -> Compiler {
    let schema: SchemaRef = rows().schema();
    Compiler::new(&[(source("t"), Arc::clone(&schema)), (source("u"), schema)]).expect("two sources")
}

fn compile(sql: &str) -> Query {
    compiler()
        .compile(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn refused(sql: &str) -> Error {
    compiler()
        .compile(sql)
        .err()
        .unwrap_or_else(|| panic!("{sql} compiles"))
}

fn stream(batches: Vec<RecordBatch>) -> BatchStream {
    futures::stream::iter(batches.into_iter().map(Ok)).boxed()
}

fn both(partitions: Vec<Vec<RecordBatch>>) -> HashMap<SourceName, Vec<BatchStream>> {
    let streams = || partitions.clone().into_iter().map(stream).collect();
    HashMap::from([(source("t"), streams()), (source("u"), streams())])
}

fn collect(query: &Query, inputs: HashMap<SourceName, Vec<BatchStream>>) -> Result<Vec<RecordBatch>, String> {
    let mut batches = Vec::new();
    for mut stream in query.run(NOW, inputs).map_err(|error| error.to_string())? {
        while let Some(batch) = futures::executor::block_on(stream.next()) {
            batches.push(batch.map_err(|error| error.strip_backtrace())?);
        }
    }
    Ok(batches)
}

fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let cell = |column: &ArrayRef, row: usize| match column.is_null(row) {
        true => "null".to_owned(),
        false => array_value_to_string(column, row).expect("a printable value"),
    };
    batches
        .iter()
        .flat_map(|batch| {
            (0..batch.num_rows()).map(|row| {
                let cells: Vec<String> = batch.columns().iter().map(|column| cell(column, row)).collect();
                cells.join("|")
            })
        })
        .collect()
}

fn check(sql: &str, expected: &[&str]) {
    let query = compile(sql);
    let batches = collect(&query, both(vec![vec![rows()]])).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(lines(&batches), expected, "{sql}\n{}", query.explain());
}

fn names(sql: &str) -> Vec<String> {
    let schema = compile(sql).schema();
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

#[test]
fn the_job_of_the_readme_counts_characters() {
    check(
        "SELECT CAST(value AS STRING) AS m, length(CAST(value AS STRING)) AS n FROM t",
        &["ab|2", "null|null", "hé|2"],
    );
}

#[test]
fn an_expression_that_stands_twice_is_computed_once() {
    let query = compile("SELECT CAST(value AS STRING) AS m, length(CAST(value AS STRING)) AS n FROM t");
    let plan = query.explain();
    assert_eq!(plan.matches("cast(binary as string)").count(), 1, "{plan}");
}

#[test]
fn each_input_stream_becomes_an_output_stream_and_the_plan_is_bound_anew_for_each_batch() {
    let query = compile("SELECT n FROM t WHERE n IS NOT NULL");
    for partitions in [1, 3, 2] {
        let inputs = both(vec![vec![rows()]; partitions]);
        assert_eq!(query.run(NOW, inputs).expect("bound").len(), partitions);
        let batches = collect(&query, both(vec![vec![rows()]; partitions])).expect("rows");
        assert_eq!(lines(&batches).len(), 2 * partitions);
    }
    assert_eq!(collect(&query, both(vec![])).map(|batches| batches.len()), Ok(0));
}

#[test]
fn a_batch_of_rows_leaves_before_the_next_is_read() {
    let query = compile("SELECT n + 1 FROM t");
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let inputs = HashMap::from([(source("t"), vec![receiver.boxed()])]);
    let mut streams = query.run(NOW, inputs).expect("bound");
    let mut output = streams.remove(0);
    for _ in 0..2 {
        sender.unbounded_send(Ok(rows())).expect("it is read");
        let batch = futures::executor::block_on(output.next())
            .expect("a batch")
            .expect("rows");
        assert_eq!(batch.num_rows(), 3);
    }
}

#[test]
fn union_all_of_sources_keeps_all_rows_and_brings_columns_to_one_type() {
    check(
        "SELECT n FROM t WHERE n = 1 UNION ALL SELECT CAST(n AS BIGINT) + 10 FROM u WHERE n = 1",
        &["1", "11"],
    );
    let query = compile("SELECT n FROM t UNION ALL SELECT CAST(n AS BIGINT) FROM u");
    assert_eq!(query.schema().field(0).data_type().to_string(), "Int64");
    assert_eq!(query.sources(), [source("t"), source("u")]);
}

#[test]
fn names_are_found_whatever_their_case_and_printed_as_written() {
    check("SELECT CAMELCASE FROM T WHERE `CamelCase` = 't1'", &["t1"]);
    assert_eq!(
        names("SELECT *, CAMELCASE, t.N FROM t"),
        ["value", "n", "camelCase", "CAMELCASE", "N"]
    );
    assert_eq!(names("SELECT * EXCEPT (value) FROM t"), ["n", "camelCase"]);
    assert_eq!(names("SELECT n, n FROM t"), ["n", "n"]);
    assert_eq!(
        names("SELECT x.`a b` FROM (SELECT n AS `a b` FROM t) AS x"),
        ["a b"]
    );
}

#[test]
fn subqueries_withs_and_earlier_aliases_can_be_named() {
    check(
        "WITH a AS (SELECT n AS x FROM t), b AS (SELECT x + 1 AS y FROM a) SELECT y FROM b WHERE y IS NOT NULL",
        &["2", "1"],
    );
    check("SELECT n + 1 AS m, m * 2 AS k FROM t WHERE n = 1", &["2|4"]);
}

#[test]
fn both_kinds_of_quotes_are_text_and_backslashes_escape() {
    check(
        r#"SELECT "a", 'it\'s', 'a\tb', `n` FROM t WHERE n = 1"#,
        &["a|it's|a\tb|1"],
    );
}

#[test]
fn explode_makes_a_row_of_each_element_and_lateral_view_keeps_the_columns() {
    check(
        "SELECT n, explode(array(1, 2)) AS e FROM t WHERE n = 1",
        &["1|1", "1|2"],
    );
    check(
        "SELECT n, v.e + 1 FROM t LATERAL VIEW explode(split('a,b', ',')) s AS p LATERAL VIEW explode(array(n)) v AS e \
         WHERE n = 1 AND p = 'b'",
        &["1|2"],
    );
    check("SELECT explode(filter(array(1), x -> x > 1)) FROM t", &[]);
    check("SELECT explode(CASE WHEN n = 1 THEN array(7) END) FROM t", &["7"]);
    check(
        "SELECT explode_outer(filter(array(1), x -> x > n)) FROM t WHERE n = 1",
        &["null"],
    );
}

#[test]
fn the_right_side_is_not_computed_where_the_left_decides() {
    check("SELECT n FROM t WHERE n <> 0 AND 10 / n > 1", &["1"]);
    check("SELECT n = 0 OR 10 / n > 1 FROM t", &["true", "true", "null"]);
    check(
        "SELECT CASE WHEN n = 0 THEN 0 ELSE 10 / n END FROM t",
        &["10.0", "0.0", "null"],
    );
    check("SELECT if(n = 0, -1, 10 div n) FROM t", &["10", "-1", "null"]);
    check(
        "SELECT CASE WHEN n = 0 THEN false ELSE 10 / n > 1 END FROM t",
        &["true", "false", "null"],
    );
    check(
        "SELECT coalesce(n, 1 / 0) FROM t WHERE n IS NOT NULL",
        &["1.0", "0.0"],
    );
    check(
        "SELECT y FROM (SELECT 10 / n AS y FROM t WHERE n <> 0) WHERE y > 1",
        &["10.0"],
    );
    check(
        "SELECT y FROM (SELECT 10 / n AS y, n FROM t) WHERE n = 1 AND y > 1",
        &["10.0"],
    );
    check(
        "SELECT y FROM (SELECT CAST(camelCase AS INT) AS y FROM t WHERE camelCase RLIKE '^[0-9]+$') WHERE y > 1",
        &[],
    );
    check(
        "SELECT filter(array(0, 1), x -> x <> 0 AND 1 / x > 0) FROM t WHERE n = 1",
        &["[1]"],
    );
}

#[test]
fn a_value_that_has_no_result_fails_the_batch_with_sparks_condition() {
    for (sql, condition) in [
        ("SELECT 1 / n FROM t", "[DIVIDE_BY_ZERO]"),
        ("SELECT n + 2147483647 FROM t", "[ARITHMETIC_OVERFLOW]"),
        ("SELECT CAST(camelCase AS INT) FROM t", "[CAST_INVALID_INPUT]"),
        ("SELECT CAST(n + 127 AS TINYINT) FROM t", "[CAST_OVERFLOW]"),
        ("SELECT array(1)[n] FROM t", "[INVALID_ARRAY_INDEX]"),
    ] {
        let error = collect(&compile(sql), both(vec![vec![rows()]])).expect_err(sql);
        assert!(error.contains(condition), "{sql}: {error}");
    }
}

#[test]
fn replacement_characters_are_counted_once_for_each_row_that_is_read() {
    let query = compile("SELECT CAST(value AS STRING) AS m, upper(m), CAST(X'FF' AS STRING) FROM t");
    assert_eq!(query.take_replaced_characters(), 0, "constants are no rows");
    let broken = table(vec![Some(b"a\xFFb\xC3"), Some(b"ok")], vec![Some(1), Some(2)]);
    let batches = collect(&query, both(vec![vec![broken]])).expect("rows");
    assert_eq!(
        lines(&batches)[0],
        "a\u{FFFD}b\u{FFFD}|A\u{FFFD}B\u{FFFD}|\u{FFFD}"
    );
    assert_eq!(query.take_replaced_characters(), 2);
    assert_eq!(query.take_replaced_characters(), 0);
}

#[test]
fn the_current_time_is_the_batchs_and_not_the_planners() {
    check(
        "SELECT unix_millis(current_timestamp()), date_format(now(), 'HH:mm') FROM t WHERE n = 1",
        &["1767323045678|03:04"],
    );
}

#[test]
fn what_needs_more_than_a_batch_is_refused_by_name() {
    for (sql, operator) in [
        ("SELECT DISTINCT n FROM t", "DISTINCT"),
        ("SELECT count(*) FROM t", "aggregate count"),
        ("SELECT n FROM t GROUP BY n", "GROUP BY"),
        ("SELECT n FROM t HAVING n > 1", "GROUP BY"),
        ("SELECT n FROM t ORDER BY n", "ORDER BY"),
        ("SELECT n FROM t SORT BY n", "SORT BY"),
        ("SELECT n FROM t LIMIT 1", "LIMIT"),
        ("SELECT n FROM (SELECT n FROM t LIMIT 1)", "LIMIT"),
        ("SELECT t.n FROM t JOIN u ON t.n = u.n", "JOIN"),
        ("SELECT t.n FROM t, u", "JOIN"),
        ("SELECT n FROM t UNION SELECT n FROM u", "UNION"),
        ("SELECT n FROM t INTERSECT SELECT n FROM u", "INTERSECT"),
        ("SELECT n FROM t EXCEPT SELECT n FROM u", "EXCEPT"),
        (
            "SELECT row_number() OVER (ORDER BY n) FROM t",
            "window function row_number",
        ),
        ("SELECT sum(n) OVER () FROM t", "window function sum"),
        ("SELECT n FROM t WHERE n IN (SELECT n FROM u)", "a subquery"),
        ("SELECT n FROM t WHERE EXISTS (SELECT 1 FROM u)", "a subquery"),
    ] {
        let error = refused(sql);
        assert_eq!(error.code(), "E0414", "{sql}: {error}");
        assert!(error.to_string().starts_with(operator), "{sql}: {error}");
    }
}

#[test]
fn only_one_select_is_taken() {
    for (sql, word) in [
        ("DROP TABLE t", "DROP"),
        ("INSERT INTO t SELECT * FROM u", "INSERT"),
        ("CREATE VIEW v AS SELECT 1", "CREATE"),
        ("COPY t TO 'x'", "COPY"),
        ("SELECT n FROM t; SELECT n FROM u", "several statements"),
        ("", "nothing"),
    ] {
        let error = refused(sql);
        assert_eq!(error.code(), "E0415", "{sql}: {error}");
        assert!(error.to_string().contains(word), "{sql}: {error}");
    }
}

#[test]
fn an_error_names_its_place_and_the_nearest_name() {
    for (sql, code, text) in [
        (
            "SELECT n FROM\n  tt",
            "E0411",
            "table `tt` at line 2, column 3 is not a source of this job; did you mean `t`?",
        ),
        (
            "SELECT valu FROM t",
            "E0412",
            "column `valu` at line 1, column 8 does not exist; did you mean `value`?",
        ),
        (
            "SELECT n,\n  lenght(camelCase) FROM t",
            "E0413",
            "function `lenght` at line 2, column 3 does not exist; did you mean `length`?",
        ),
        ("SELECT n FORM t", "E0410", "at Line: 1"),
        ("SELECT camelCase & 1.5 FROM t", "E0416", "line 1, column 8"),
        (
            "SELECT a.n FROM (SELECT n, n FROM t) AS a",
            "E0418",
            "`a`.`n` or `a`.`n`",
        ),
        (
            "SELECT n FROM t UNION ALL SELECT n FROM t",
            "E0419",
            "source `t` is read twice",
        ),
        ("SELECT n FROM t UNION ALL SELECT n, n FROM u", "E0416", "1 and 2"),
        (
            "SELECT regexp_like(camelCase, '(') FROM t",
            "E0416",
            "cannot use its pattern",
        ),
        ("SELECT 1", "E0417", "a SELECT without FROM"),
    ] {
        let error = refused(sql);
        assert_eq!(error.code(), code, "{sql}: {error}");
        assert!(error.to_string().contains(text), "{sql}: {error}");
    }
}

#[test]
fn a_sources_fault_passes_through() {
    let query = compile("SELECT n FROM t");
    let fault = Fault::new(
        baton_core::ErrorKind::Unavailable,
        "E0299",
        "the broker is away".to_owned(),
    );
    let failing: BatchStream = futures::stream::iter([Err(fault)]).boxed();
    let inputs = HashMap::from([(source("t"), vec![failing])]);
    let mut streams = query.run(NOW, inputs).expect("bound");
    let error = futures::executor::block_on(streams.remove(0).next())
        .expect("an item")
        .expect_err("a fault");
    assert!(error.to_string().contains("the broker is away"), "{error}");
}

#[test]
fn a_source_without_streams_is_a_bug_that_is_named() {
    let error = compile("SELECT n FROM t")
        .run(NOW, HashMap::new())
        .err()
        .expect("an error");
    assert_eq!((error.code(), error.to_string().contains("`t`")), ("E0421", true));
}

/// Examples of Spark's own documentation.
#[test]
fn documented_examples_give_the_documented_results() {
    let mut wrong = Vec::new();
    for (expr, expected) in [
        ("array_distinct(array(1, 2, 3, null, 3))", "[1, 2, 3, null]"),
        ("array_union(array(1, 2, 3), array(1, 3, 5))", "[1, 2, 3, 5]"),
        ("array_intersect(array(1, 2, 3), array(1, 3, 5))", "[1, 3]"),
        ("array_except(array(1, 2, 3), array(1, 3, 5))", "[2]"),
        ("array_max(array(1, 20, null, 3))", "20"),
        ("array_min(array(1, 20, null, 3))", "1"),
        ("array_remove(array(1, 2, 3, null, 3), 3)", "[1, 2, null]"),
        ("array_repeat('123', 2)", "[123, 123]"),
        ("array_append(array('b', 'd', 'c', 'a'), 'd')", "[b, d, c, a, d]"),
        (
            "array_join(array('hello', null, 'world'), ' ', ',')",
            "hello , world",
        ),
        ("array_sort(array(3, null, 1))", "[1, 3, null]"),
        (
            "sort_array(array('b', 'd', null, 'c', 'a'), false)",
            "[d, c, b, a, null]",
        ),
        ("flatten(array(array(1, 2), array(3, 4)))", "[1, 2, 3, 4]"),
        ("slice(array(1, 2, 3, 4), -2, 2)", "[3, 4]"),
        ("exists(array(1, 2, 3), x -> x % 2 = 0)", "true"),
        ("get(array(1, 2, 3), 3)", "null"),
        ("try_element_at(array(1, 2, 3), 4)", "null"),
        ("map_values(map(1, 'a', 2, 'b'))", "[a, b]"),
        ("map_entries(map(1, 'a', 2, 'b'))", "[{1, a}, {2, b}]"),
        ("element_at(map(1, 'a', 2, 'b'), 2)", "b"),
        ("overlay('Spark SQL' PLACING '_' FROM 6)", "Spark_SQL"),
        (
            "overlay('Spark SQL' PLACING 'ANSI ' FROM 7 FOR 0)",
            "Spark ANSI SQL",
        ),
        ("substring('Spark SQL' FROM 5 FOR 1)", "k"),
        ("trim(LEADING 'SL' FROM 'SSparkSQLS')", "parkSQLS"),
        ("format_number(12332.123456, 4)", "12,332.1235"),
        (
            "regexp_extract_all('100-200, 300-400', '(\\\\d+)-(\\\\d+)', 1)",
            "[100, 300]",
        ),
        ("split('oneAtwoBthreeC', '[ABC]', 2)", "[one, twoBthreeC]"),
        ("split('oneAtwoBthreeC', '[ABC]')", "[one, two, three, ]"),
        ("startswith('Spark SQL', 'Spark')", "true"),
        ("bround(25, -1)", "20"),
        ("round(2.5D)", "3.0"),
        ("ceil(3.1411, 3)", "3.142"),
        ("floor(3.1411, 3)", "3.141"),
        ("conv(-10, 16, -10)", "-16"),
        ("hex(17)", "11"),
        ("width_bucket(5.3, 0.2, 10.6, 5)", "3"),
        ("factorial(5)", "120"),
        ("next_day('2015-01-14', 'TU')", "2015-01-20"),
        (
            "months_between('1997-02-28 10:30:00', '1996-10-30')",
            "3.94959677",
        ),
        ("make_date(2013, 7, 15)", "2013-07-15"),
        ("trunc('2019-08-04', 'week')", "2019-07-29"),
        (
            "date_trunc('YEAR', '2015-03-05T09:32:05.359')",
            "2015-01-01 00:00:00",
        ),
        ("to_unix_timestamp('2016-04-08', 'yyyy-MM-dd')", "1460073600"),
        ("date_part('doy', DATE'2019-08-12')", "224"),
        ("DATE'2026-01-31' + INTERVAL 1 MONTH", "2026-02-28"),
        ("DATE'2026-01-31' + INTERVAL 1 HOUR", "2026-01-31 01:00:00"),
        ("typeof(1 + CAST(1 AS FLOAT))", "double"),
        ("X'61' = 'a' AND upper(X'61') = 'A'", "true"),
        ("'7' + 1", "8"),
        ("'2026-01-02' < DATE'2026-01-03'", "true"),
        ("split('ab', '')", "[a, b]"),
        ("split('abc', '', 2)", "[a, bc]"),
        ("timestamp_seconds(1230219000.123)", "2008-12-25 15:30:00.123"),
        ("CAST(TIMESTAMP'1970-01-01 00:00:01.5' AS DECIMAL(10, 2))", "1.50"),
        ("double('NaN')", "NaN"),
        ("date('2026-01-02') < timestamp('2026-01-02 00:00:01')", "true"),
        (
            "url_decode('https%3A%2F%2Fspark.apache.org')",
            "https://spark.apache.org",
        ),
        (
            "parse_url('http://spark.apache.org/path?query=1', 'HOST')",
            "spark.apache.org",
        ),
        ("elt(1, 'scala', 'java')", "scala"),
        ("nvl2(NULL, 2, 1)", "1"),
        ("isnan(cast('NaN' AS double))", "true"),
    ] {
        let sql = format!("SELECT CAST({expr} AS STRING) FROM t WHERE n = 1");
        let found = compiler()
            .compile(&sql)
            .map_err(|error| error.to_string())
            .and_then(|query| collect(&query, both(vec![vec![rows()]])));
        let found = found
            .map(|batches| lines(&batches).join("; "))
            .unwrap_or_else(|error| error);
        if found != expected {
            wrong.push(format!("{expr}: {found}, documented {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
