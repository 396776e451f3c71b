//! Tables in Markdown.

/// The part of a text under a heading, up to the next heading of its level or a higher one.
#[track_caller]
pub fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = format!("\n{heading}\n");
    let (_, rest) = text
        .split_once(&start)
        .unwrap_or_else(|| panic!("no {heading:?}"));
    let level = heading.split(' ').next().unwrap().len();
    let ends = (1..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))));
    &rest[..ends.min().unwrap_or(rest.len())]
}

/// The cells of the tables in a text, row by row, without their heads.
pub fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<_> = text.lines().collect();
    let is_row = |line: &str| line.starts_with('|') && line.ends_with('|');
    let is_rule = |line: &str| is_row(line) && line.contains("---");
    let head_of_table = |place: usize| lines.get(place + 1).is_some_and(|next| is_rule(next));
    let body = (0..lines.len())
        .filter(|&place| is_row(lines[place]) && !is_rule(lines[place]) && !head_of_table(place));
    body.map(|place| {
        lines[place]
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect()
    })
    .collect()
}

/// What stands between backticks.
pub fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}
