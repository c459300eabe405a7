pub mod pll;
pub mod registers;
