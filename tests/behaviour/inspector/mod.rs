//! An operator who looks at a task and moves it.

mod each_state;
mod odd_fields;
mod shown;
