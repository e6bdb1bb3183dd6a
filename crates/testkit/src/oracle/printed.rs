//! What the console sink printed.

/// A row of the console's table: `|partition|offset|value|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// First column.
    pub partition: i32,
    /// Second column.
    pub offset: i64,
    /// The rest.
    pub value: String,
}

impl Row {
    /// Partition and number of a message that [`crate::numbered`] made.
    #[must_use]
    pub fn number(&self) -> Option<(i32, i64)> {
        let (partition, number) = self.value.split_once('-')?;
        Some((partition.parse().ok()?, number.parse().ok()?))
    }
}

/// The output of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    batches: Vec<(u64, Vec<Row>)>,
}

impl Printed {
    /// Reads console output. A last line without an end was cut by a kill and does not count as shown.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut batches: Vec<(u64, Vec<Row>)> = Vec::new();
        for line in text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
        {
            if let Some(id) = line.strip_prefix("Batch: ").and_then(|id| id.trim().parse().ok()) {
                batches.push((id, Vec::new()));
            } else if let (Some(row), Some((_, rows))) = (row(line), batches.last_mut()) {
                rows.push(row);
            }
        }
        Self { batches }
    }

    /// Every row, in the order in which it was printed.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.batches.iter().flat_map(|(_, rows)| rows)
    }

    /// The batches, in the order in which they were printed, with their rows.
    #[must_use]
    pub fn batches(&self) -> &[(u64, Vec<Row>)] {
        &self.batches
    }
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.splitn(3, '|');
    let partition = cells.next()?.trim().parse().ok()?;
    let offset = cells.next()?.trim().parse().ok()?;
    Some(Row {
        partition,
        offset,
        value: cells.next().unwrap_or_default().trim().to_owned(),
    })
}
