//! Batches of records, and their columns.

pub mod batch;
pub mod broken;
pub mod cells;
pub mod columns;
pub mod decode;
pub mod found;
pub mod key_rows;
pub mod rows;
pub mod text;

pub use self::batch::Batch;
pub use self::broken::DecodeError;
pub use self::columns::Columns;
pub use self::columns::PartTypes;
pub use self::found::FoundColumn;
pub use self::found::FoundColumns;
pub use self::key_rows::KeyRows;
pub use self::text::TextColumn;
