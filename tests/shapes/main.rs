//! Shapes against closed forms: what touches exactly, what slides over flush neighbours, what queries answer.

mod arch;
#[path = "../contact_support/mod.rs"]
mod contact_support;
mod kinds;
mod queries;
mod slide;
mod touching;
