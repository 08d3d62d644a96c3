//! Results as a Parquet file: the rows of `results.csv`, with a type for each column.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::results::sheet::Sheet;

/// The type of a column. An empty cell is null in each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Texts in UTF-8.
    Text,
    /// Counts and numbers of repeats, 64 bits.
    Whole,
    /// Everything else that is a number, 64 bits.
    Number,
}

/// The rows of a sheet as a Parquet file, uncompressed: one group of rows, whose bytes depend on
/// nothing but the sheet.
pub(crate) fn parquet(sheet: &Sheet) -> Result<Vec<u8>> {
    let kinds: Vec<Kind> = (0..sheet.columns().len()).map(|place| kind(sheet, place)).collect();
    let fields = sheet.columns().iter().zip(&kinds).map(|(name, kind)| field(name, *kind));
    let schema = Type::group_type_builder("results").with_fields(fields.collect::<Result<_>>()?);
    let schema = Arc::new(schema.build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties()))?;
    let mut group = writer.next_row_group()?;
    for (place, kind) in kinds.iter().enumerate() {
        let missing = || ParquetError::General("a column without a writer".to_owned());
        let column = group.next_column()?.ok_or_else(missing)?;
        let cells = sheet.rows().iter().map(|row| row[place].as_str());
        match kind {
            Kind::Text => write::<ByteArrayType>(column, cells, |text| Some(ByteArray::from(text))),
            Kind::Whole => write::<Int64Type>(column, cells, |text| text.parse().ok()),
            Kind::Number => write::<DoubleType>(column, cells, |text| text.parse().ok()),
        }?;
    }
    group.close()?;
    writer.into_inner()
}

fn properties() -> WriterProperties {
    let program = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    WriterProperties::builder().set_created_by(program.to_owned()).build()
}

/// The type of a column. A seed is a name rather than a number, and may not fit a signed one.
fn kind(sheet: &Sheet, place: usize) -> Kind {
    let name = sheet.columns()[place].as_str();
    if ["run", "experiment", "backend", "seed", "status"].contains(&name) {
        return Kind::Text;
    }
    let cells = || sheet.rows().iter().map(|row| row[place].as_str()).filter(|c| !c.is_empty());
    let short = name.rsplit_once('.').map_or(name, |(_, short)| short);
    let counts = ["repeat", "pkt", "byte", "messages"].iter().any(|start| short.starts_with(start));
    if counts && cells().all(|cell| cell.parse::<i64>().is_ok()) {
        return Kind::Whole;
    }
    let all_numbers = cells().all(|cell| cell.parse::<f64>().is_ok());
    if all_numbers { Kind::Number } else { Kind::Text }
}

fn field(name: &str, kind: Kind) -> Result<Arc<Type>> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Whole => (Physical::INT64, None),
        Kind::Number => (Physical::DOUBLE, None),
    };
    let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
    builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
}

/// Writes a column's cells; one that is empty, or that `read` cannot read, is null.
fn write<'a, T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a str>,
    read: impl Fn(&'a str) -> Option<T::T>,
) -> Result<()> {
    let read = |cell: &'a str| if cell.is_empty() { None } else { read(cell) };
    let values: Vec<Option<T::T>> = cells.map(read).collect();
    // The definition levels: 1 for a value, 0 for null.
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::*;

    #[test]
    fn a_parquet_file_holds_the_rows_with_their_types() {
        let text = "run,repeat,seed,status,rtt_ms,sender.pktSent,usJitter,kind\n\
                    a,1,18446744073709551615,ok,20,4750,1.5,tcp\n\
                    b,2,7,\"closed, \u{b5}\",40,,,3\n";
        let sheet = Sheet::parse(text).unwrap();
        let bytes = parquet(&sheet).unwrap();
        assert!(bytes == parquet(&sheet).unwrap(), "the same sheet gives the same bytes");
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let fields = |row: &Row| row.get_column_iter().map(|(_, f)| f.clone()).collect::<Vec<_>>();
        let text = |text: &str| Field::Str(text.to_owned());
        let first = [
            text("a"),
            Field::Long(1),
            text("18446744073709551615"),
            text("ok"),
            Field::Double(20.0),
            Field::Long(4750),
            Field::Double(1.5),
            text("tcp"),
        ];
        assert_eq!(fields(&rows[0]), first);
        let second = fields(&rows[1]);
        assert_eq!(second[3], text("closed, \u{b5}"));
        assert_eq!((&second[5], &second[6]), (&Field::Null, &Field::Null));
        let names: Vec<&String> = rows[0].get_column_iter().map(|(name, _)| name).collect();
        assert_eq!(names, sheet.columns().iter().collect::<Vec<_>>());
        assert_eq!(rows.len(), 2);
    }
}
