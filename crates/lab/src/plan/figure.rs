//! The figures, tables and references of a plan.

use crate::plan::document::{DocumentContent, DocumentEntry, DocumentNode, DocumentTable};
use crate::plan::error::{PlanError, PlanPlace};
use crate::plan::value::literal;
use crate::plan::{Dimension, Quantity};

/// A figure of a report.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Short, for links and file names: `2a`.
    pub name: String,
    /// Above the figure.
    pub title: String,
    /// Below it, in sentences; may be empty.
    pub caption: String,
    /// The statement of the publication there, shown as a quotation; may be empty.
    pub published: String,
    /// The horizontal axis.
    pub x: Horizontal,
    /// Metrics or columns on the vertical axis.
    pub y: Vec<String>,
    /// For each of those the metric that it is expected to be, drawn beside it; or none.
    pub expected: Vec<String>,
    /// The horizontal axis' name; empty for that of `x`.
    pub x_title: String,
    /// The vertical axis' name; empty to take it from the axis' metrics.
    pub y_title: String,
    /// Whether the vertical axis is logarithmic.
    pub log: bool,
    /// Whether a box plot shows how a column of the series is distributed over time, in the first
    /// repeat; otherwise a point is a mean over the runs.
    pub boxes: bool,
    /// The parts of runs of which each is a point; `None` if a point is a mean over runs.
    pub parts: Option<RunParts>,
    /// Parameters that part the runs into lines; each combination of their values is one.
    pub by: Vec<String>,
    /// Which runs it shows.
    pub filters: Vec<Filter>,
    /// Names of references to lay beside.
    pub references: Vec<String>,
    /// Metrics or columns of the first run, in seconds, that mark events on an axis of time.
    pub marks: Vec<String>,
    pub(crate) place: PlanPlace,
    pub(crate) x_place: PlanPlace,
    pub(crate) y_place: PlanPlace,
}

/// The parts of runs that a figure shows one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct RunParts {
    /// The record that has a row for each part, or `runs` for runs as a whole.
    pub record: String,
    /// The column that decides the colour of a heat map, and the value that is hottest.
    pub heat: Option<(String, f64)>,
}

/// The quantity of a horizontal axis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Horizontal {
    /// A parameter (or another column): each point is a group of runs.
    Column(String),
    /// Numbers, one for each metric of the vertical axis: each line has a point of each metric.
    Places(Vec<String>),
    /// Time since the start of a stream: lines are series of the first repeat.
    Time,
}

/// A table of a report: a metric over two parameters, or several metrics.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Short, for links and file names: `7`.
    pub name: String,
    /// Above the table.
    pub title: String,
    /// Below it, in sentences; may be empty.
    pub caption: String,
    /// The statement of the publication there, shown as a quotation; may be empty.
    pub published: String,
    /// Metrics or columns in the cells.
    pub values: Vec<String>,
    /// Parameters whose combinations are the rows.
    pub rows: Vec<String>,
    /// Parameters whose combinations are the columns.
    pub columns: Vec<String>,
    /// Which runs it shows. Runs that neither rows nor columns part are put together.
    pub filters: Vec<Filter>,
    /// Two values of a parameter whose cells are compared instead of shown.
    pub compare: Option<Compare>,
    /// Names of references to lay beside.
    pub references: Vec<String>,
    pub(crate) place: PlanPlace,
    pub(crate) values_place: PlanPlace,
}

/// Two groups of runs compared cell by cell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compare {
    /// Whether the first is divided by the second, or the second subtracted from it.
    pub how: Comparison,
    /// The parameter in which they differ.
    pub parameter: String,
    /// Its value in the first group, as written.
    pub first: String,
    /// Its value in the second group, as written.
    pub second: String,
}

/// How two groups are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Comparison {
    /// First divided by second.
    Ratio,
    /// First less second.
    Difference,
}

/// A condition on a parameter.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The parameter, or `experiment`, or `backend`.
    pub name: String,
    /// The condition on its value.
    pub condition: Condition,
    pub(crate) place: PlanPlace,
}

/// A condition on a parameter. Bounds may be expressions over the run's other parameters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Condition {
    /// One of these, as written.
    OneOf(Vec<String>),
    /// At least and at most, both as written.
    Within(Option<String>, Option<String>),
}

/// Published or measured figures to lay beside ours.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Its name in figures and tables.
    pub name: String,
    /// For people.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// The CSV file, beside the plan or built in; `None` if `rows` are in the plan.
    pub file: Option<String>,
    /// Rows in the plan itself: column and value.
    pub rows: Vec<Vec<(String, String)>>,
    /// Our parameter or metric, and its column or a formula over columns there.
    pub columns: Vec<(String, String)>,
    /// The streaming time that its counts and sums span, where they are compared with those of runs
    /// of any length.
    pub span: Option<Quantity>,
    pub(crate) place: PlanPlace,
}

impl Figure {
    pub(crate) fn read(table: &DocumentTable) -> Result<Self, PlanError> {
        const KEYS: &[&str] = &[
            "name",
            "title",
            "caption",
            "published",
            "experiment",
            "x",
            "y",
            "expected",
            "x_title",
            "y_title",
            "log",
            "boxes",
            "points",
            "heat",
            "hottest",
            "by",
            "where",
            "reference",
            "marks",
        ];
        table.only("[[figure]]", KEYS)?;
        let name = table.required("a figure", "name")?;
        let y = table.texts("y")?;
        if y.is_empty() {
            return Err(table
                .place
                .error("a figure has no `y`: one or several metrics or columns"));
        }
        let x = Horizontal::read(table, y.len())?;
        let expected = table.texts("expected")?;
        if !expected.is_empty() && (expected.len() != y.len() || x == Horizontal::Time) {
            let message = "`expected` must have a metric for each of `y`, and no time beside it";
            return Err(table.place_of("expected").error(message));
        }
        Ok(Self {
            title: table.text("title")?.unwrap_or_else(|| format!("Figure {name}")),
            name,
            caption: table.text("caption")?.unwrap_or_default(),
            published: table.text("published")?.unwrap_or_default(),
            x,
            y,
            expected,
            x_title: table.text("x_title")?.unwrap_or_default(),
            y_title: table.text("y_title")?.unwrap_or_default(),
            log: table.switch("log")?.unwrap_or(false),
            boxes: table.switch("boxes")?.unwrap_or(false),
            parts: RunParts::read(table)?,
            by: table.texts("by")?,
            filters: Filter::read_all(table)?,
            references: table.texts("reference")?,
            marks: table.texts("marks")?,
            place: table.place.clone(),
            x_place: table.place_of("x"),
            y_place: table.place_of("y"),
        })
    }
}

impl Horizontal {
    /// Reads `x` of a figure with this number of metrics.
    fn read(table: &DocumentTable, metrics: usize) -> Result<Self, PlanError> {
        let Some(entry) = table.get("x") else {
            return table.required("a figure", "x").map(Self::Column);
        };
        if let DocumentContent::List(_) = entry.value.content {
            let places = entry.texts()?;
            let numbers = places.iter().filter(|place| place.parse::<f64>().is_ok());
            if places.len() != metrics || numbers.count() != metrics {
                return Err(entry.error("must be a name, or a number for each metric of `y`"));
            }
            return Ok(Self::Places(places));
        }
        Ok(match entry.text()? {
            "time" => Self::Time,
            column => Self::Column(column.to_owned()),
        })
    }
}

impl RunParts {
    /// Reads `points`, `heat` and `hottest` of a figure.
    fn read(table: &DocumentTable) -> Result<Option<Self>, PlanError> {
        let (record, heat) = (table.text("points")?, table.text("heat")?);
        let hottest = table.text("hottest")?;
        let Some(record) = record else {
            let without = ["heat", "hottest"].into_iter().find_map(|key| table.get(key));
            return without.map_or(Ok(None), |entry| Err(entry.error("needs `points`")));
        };
        let number = |text: String| text.parse::<f64>().ok().filter(|number| *number > 0.0);
        let hottest = hottest.and_then(number);
        let heat = match (heat, hottest) {
            (None, None) => None,
            (Some(heat), Some(hottest)) => Some((heat, hottest)),
            _ => {
                let message = "a heat map needs `heat`, a column, and `hottest`, a number above 0";
                return Err(table.place.error(message));
            }
        };
        Ok(Some(Self { record, heat }))
    }
}

impl Grouping {
    pub(crate) fn read(table: &DocumentTable) -> Result<Self, PlanError> {
        const KEYS: &[&str] = &[
            "name",
            "title",
            "caption",
            "published",
            "experiment",
            "value",
            "rows",
            "columns",
            "where",
            "ratio",
            "difference",
            "reference",
        ];
        table.only("[[table]]", KEYS)?;
        let name = table.required("a table", "name")?;
        let values = table.texts("value")?;
        if values.is_empty() {
            return Err(table.place.error("a table has no `value`: metrics or columns"));
        }
        let compare = match (table.get("ratio"), table.get("difference")) {
            (None, None) => None,
            (Some(entry), None) => Some(Compare::read(entry, Comparison::Ratio)?),
            (None, Some(entry)) => Some(Compare::read(entry, Comparison::Difference)?),
            (Some(_), Some(entry)) => {
                return Err(entry.error("and `ratio` cannot both be had in one table"));
            }
        };
        Ok(Self {
            title: table.text("title")?.unwrap_or_else(|| format!("Table {name}")),
            name,
            caption: table.text("caption")?.unwrap_or_default(),
            published: table.text("published")?.unwrap_or_default(),
            values,
            rows: table.texts("rows")?,
            columns: table.texts("columns")?,
            filters: Filter::read_all(table)?,
            compare,
            references: table.texts("reference")?,
            place: table.place.clone(),
            values_place: table.place_of("value"),
        })
    }
}

impl Compare {
    /// Reads `{ retransmitalgo = ["aggressive", "efficient"] }`.
    fn read(entry: &DocumentEntry, how: Comparison) -> Result<Self, PlanError> {
        let form = "must name a parameter and two of its values: { loss = [\"10%\", \"5%\"] }";
        match entry.table()?.entries.as_slice() {
            [one] => match one.texts()?.as_slice() {
                [first, second] => Ok(Self {
                    how,
                    parameter: one.key.clone(),
                    first: first.clone(),
                    second: second.clone(),
                }),
                _ => Err(entry.error(form)),
            },
            _ => Err(entry.error(form)),
        }
    }
}

impl Filter {
    /// The conditions of `where`, and of `experiment`, which is one of them.
    fn read_all(table: &DocumentTable) -> Result<Vec<Self>, PlanError> {
        let mut filters = Vec::new();
        if let Some(entry) = table.get("experiment") {
            filters.push(Self::read(entry)?);
        }
        if let Some(conditions) = table.table("where")? {
            for entry in &conditions.entries {
                filters.push(Self::read(entry)?);
            }
        }
        Ok(filters)
    }

    pub(crate) fn read(entry: &DocumentEntry) -> Result<Self, PlanError> {
        let condition = match &entry.value.content {
            DocumentContent::Table(bounds) => {
                bounds.only("a condition", &["from", "to"])?;
                Condition::Within(bounds.text("from")?, bounds.text("to")?)
            }
            _ => Condition::OneOf(entry.texts()?),
        };
        Ok(Self { name: entry.key.clone(), condition, place: entry.place.clone() })
    }
}

impl Reference {
    pub(crate) fn read(table: &DocumentTable) -> Result<Self, PlanError> {
        const KEYS: &[&str] = &["name", "title", "source", "file", "rows", "columns", "span"];
        table.only("[[reference]]", KEYS)?;
        let name = table.required("a reference", "name")?;
        let rows = match table.get("rows").map(|entry| &entry.value.content) {
            None => Vec::new(),
            Some(DocumentContent::List(nodes)) => {
                nodes.iter().map(row).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(table.place.error("`rows` must be a list of tables")),
        };
        let columns = match table.table("columns")? {
            None => Vec::new(),
            Some(columns) => pairs(columns)?,
        };
        let file = table.text("file")?;
        if file.is_none() == rows.is_empty() {
            return Err(table.place.error("a reference needs either `file` or `rows`"));
        }
        Ok(Self {
            title: table.text("title")?.unwrap_or_else(|| name.clone()),
            name,
            source: table.text("source")?.unwrap_or_default(),
            file,
            rows,
            columns,
            span: table.get("span").map(span).transpose()?,
            place: table.place.clone(),
        })
    }
}

fn span(entry: &DocumentEntry) -> Result<Quantity, PlanError> {
    let text = entry.text()?;
    let quantity = literal(text, None).quantity();
    let is_span = |quantity: &Quantity| {
        quantity.dimension == Dimension::Time && quantity.plain().to_f64() > 0.0
    };
    quantity
        .filter(is_span)
        .ok_or_else(|| entry.error(format!("must be a time such as 3000s, not `{text}`")))
}

fn row(node: &DocumentNode) -> Result<Vec<(String, String)>, PlanError> {
    match &node.content {
        DocumentContent::Table(table) => pairs(table),
        _ => Err(node.place.error("a row must be a table: { loss = \"5%\", overhead = 0.0966 }")),
    }
}

fn pairs(table: &DocumentTable) -> Result<Vec<(String, String)>, PlanError> {
    table.entries.iter().map(|entry| Ok((entry.key.clone(), entry.text()?.to_owned()))).collect()
}
